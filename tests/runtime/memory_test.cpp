// Memory of a program: shared buffers, equal offsets, the user's own tensors, and running out.
#include <gtest/gtest.h>

#include "tests/runtime/counting_device.h"
#include "tests/runtime/devices.h"
#include "tests/runtime/property.h"

namespace tileweave {
namespace {

/// A chain of `length` nodes; values of 64 KiB in one data tile each.
MixPlan big_chain(int length) {
  MixPlan mix;
  const Shape shape{16, 1024};
  const TileSet rows = TileSet::plain({shape, {8, 1024}});
  TensorId last = add_filled(mix, {.name = "x", .shape = {16}, .kind = TensorKind::kConstant}, 1);
  for (int i = 0; i < length; ++i) {
    const TensorId next = add_value(mix, {.name = "v" + std::to_string(i),
                                          .shape = shape,
                                          .tiles = shape,
                                          .output = i == length - 1});
    add_mix(mix, {.name = "n" + std::to_string(i),
                  .inputs = {{.tensor = last}},
                  .outputs = {{.tensor = next, .kernel_tiles = rows}},
                  .num_works = 2,
                  .salt = static_cast<std::uint32_t>(i)});
    last = next;
  }
  return mix;
}

TEST(Memory, BuffersOfDeadValuesAreReallyShared) {
  const MixPlan mix = big_chain(12);
  const auto device = open_mix_device({.num_sms = 2});
  Program program(*device, mix.plan);
  const MemoryPlan& memory = program.memory();
  EXPECT_LT(memory.arena_bytes * 2, memory.bytes_without_reuse);
  std::vector<void*> addresses;
  for (TensorId id = 0; id < mix.plan.tensors().size(); ++id) {
    if (mix.plan.tensors()[id].spec.kind == TensorKind::kValue) {
      addresses.push_back(program.address(id));
    }
  }
  std::sort(addresses.begin(), addresses.end());
  EXPECT_NE(std::adjacent_find(addresses.begin(), addresses.end()), addresses.end());
  ASSERT_TRUE(runs_like_the_oracle(*device, mix, {}));

  Program without(*device, mix.plan, {.reuse = BufferReuse::kOff});
  EXPECT_EQ(without.memory().arena_bytes, without.memory().bytes_without_reuse);
}

/// `first` signals y before it writes `side`, which nobody reads; `second` waits for y alone.
TEST(Memory, ABufferThatAWorkStillWritesAfterItsFirstSignalIsNotGivenAway) {
  TwoNodes two(3);
  const Shape shape{8, 4};
  const TileSet rows = TileSet::plain({shape, {2, 4}});
  const TensorId side = add_value(two.mix, {.name = "side", .shape = shape, .tiles = {2, 4}});
  two.first.outputs.push_back({.tensor = side, .kernel_tiles = rows});
  two.second.inputs[0].tiles_of_work = {{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}};
  const TensorId late = add_value(two.mix, {.name = "late", .shape = shape, .tiles = {8, 4}});
  two.second.outputs[0] = {.tensor = late, .kernel_tiles = rows};
  MixPlan& mix = two.done();
  add_mix(mix, {.name = "third",
                .inputs = {{.tensor = late}},
                .outputs = {{.tensor = two.z, .kernel_tiles = rows}},
                .num_works = 4,
                .salt = 3});
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto device = open_mix_device(
        {.way = CpuWay::kExplore, .num_sms = 8, .seed = seed, .delay_probability = 0.3});
    Program program(*device, mix.plan);
    EXPECT_NE(program.address(side), program.address(late));
    ASSERT_TRUE(runs_like_the_oracle(*device, mix, {}));
  }
}

TEST(Memory, TwoRanksGetTheSameOffsets) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto a = open_mix_device({.way = CpuWay::kExplore, .num_sms = 16, .seed = 1});
    const auto b = open_mix_device({.way = CpuWay::kExplore, .num_sms = 16, .seed = 2});
    const MixPlan mix = random_plan({.seed = seed});
    Program on_a(*a, mix.plan, {.mode = Mode::kOverlap});
    Program on_b(*b, mix.plan, {.mode = Mode::kSerial, .submit = Submit::kEager});
    EXPECT_EQ(on_a.memory().tensor_offset, on_b.memory().tensor_offset);
    EXPECT_EQ(on_a.memory().scratch_offset, on_b.memory().scratch_offset);
    EXPECT_EQ(on_a.memory().arena_bytes, on_b.memory().arena_bytes);
  }
}

TEST(Memory, TensorsMayLieInTheUsersMemory) {
  const auto device = open_mix_device({.num_sms = 2});
  void* mine = device->allocate(128);
  TwoNodes two;
  two.mix.plan = Plan({.name = "own memory"});
  two.mix.uploads.clear();
  two.x = add_filled(two.mix, {.name = "x", .shape = {8, 4}, .kind = TensorKind::kConstant}, 7);
  two.y = add_value(
      two.mix, {.name = "y", .shape = {8, 4}, .tiles = {2, 4}, .output = true, .address = mine});
  two.z = add_value(two.mix, {.name = "z", .shape = {8, 4}, .output = true});
  const MixPlan& mix = two.done();
  {
    Program program(*device, mix.plan);
    EXPECT_EQ(program.address(two.y), mine);
    upload(program, mix);
    MixOracle oracle(mix);
    oracle.run();
    program.run();
    program.synchronize();
    ASSERT_TRUE(same_bits(program, mix, oracle));
    std::vector<std::uint32_t> seen(32);
    device->download(seen.data(), mine, 128);
    EXPECT_EQ(seen, oracle.values(two.y));
  }
  device->release(mine);
}

TEST(Memory, RunningOutIsOneSentenceAndLeaksNothing) {
  CountingDevice device(open_mix_device({.num_sms = 2}));
  MixPlan mix;
  const Shape huge{std::int64_t{1} << 50};  // 4096 TiB
  const TensorId x = add_filled(mix, {.name = "x", .shape = {4}, .kind = TensorKind::kConstant}, 1);
  const TensorId y = add_value(mix, {.name = "y", .shape = huge, .output = true});
  add_mix(mix, {.name = "fill",
                .inputs = {{.tensor = x}},
                .outputs = {{.tensor = y,
                             .kernel_tiles = TileSet::plain({huge, {1 << 20}}),
                             .tiles_of_work = {{0}}}},
                .num_works = 1});
  try {
    Program program(device, mix.plan);
    ADD_FAILURE() << "4096 TiB were found";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("4096.0 TiB"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
  EXPECT_EQ(device.live(), 0);
  ASSERT_TRUE(runs_like_the_oracle(device, big_chain(3), {}));
  EXPECT_EQ(device.live(), 0);
}

TEST(Memory, ReadsAndWritesOfTheWrongSizeAreRefused) {
  TwoNodes two;
  const MixPlan& mix = two.done();
  const auto device = open_mix_device({.num_sms = 2});
  Program program(*device, mix.plan);
  EXPECT_THROW(program.write(two.x, std::vector<std::uint32_t>(31)), Error);
  std::vector<std::byte> short_bytes(4);
  EXPECT_THROW(program.read_bytes(two.z, short_bytes), Error);
  EXPECT_THROW(program.semaphores(two.x), Error);
}

}  // namespace
}  // namespace tileweave

// Counts that pass 2^31 and 2^32 while runs follow one another.
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/runtime/devices.h"
#include "tests/runtime/property.h"

namespace tileweave {
namespace {

constexpr int kRuns = 16;

/// Two nodes and a third that claims its works from a queue and reads both results of the second.
MixPlan counting_plan() {
  TwoNodes two(3);
  const TileSet rows = TileSet::plain({{8, 4}, {2, 4}});
  const TensorId extra = add_value(two.mix, {.name = "extra", .shape = {9}, .tiles = {4}});
  two.second.outputs.push_back({.tensor = extra,
                                .kernel_tiles = TileSet::plain({{9}, {2}}),
                                .tiles_of_work = {{0, 4}, {1}, {2}, {3}}});
  MixPlan& mix = two.done();
  const TensorId last =
      add_value(mix, {.name = "last", .shape = {9}, .tiles = {3}, .output = true});
  const TensorId tick =
      add_filled(mix, {.name = "tick", .shape = {3}, .kind = TensorKind::kState}, 5);
  add_mix(mix, {.name = "third",
                .inputs = {{.tensor = extra, .kernel_tiles = TileSet::plain({{9}, {3}})},
                           {.tensor = two.z},
                           {.tensor = tick, .kernel_tiles = TileSet::plain({{3}, {1}})}},
                .outputs = {{.tensor = last, .kernel_tiles = TileSet::plain({{9}, {3}})},
                            {.tensor = tick, .kernel_tiles = TileSet::plain({{3}, {1}})}},
                .num_works = 3,
                .num_blocks = 2,
                .taking = MixOrder::kClaimed,
                .salt = 3});
  return std::move(mix);
}

struct WrapCase {
  CpuWay way;
  Mode mode;
  Submit submit;
  std::uint32_t initial;
};

class Wrap : public testing::TestWithParam<WrapCase> {};

TEST_P(Wrap, CountsAndBasesStayExactOverSixteenRuns) {
  const WrapCase& c = GetParam();
  const MixPlan mix = counting_plan();
  const auto device = open_mix_device({.way = c.way, .num_sms = 4, .seed = 3});
  Program program(*device, mix.plan,
                  {.mode = c.mode, .submit = c.submit, .initial_count = c.initial});
  upload(program, mix);
  MixOracle oracle(mix);
  for (std::uint32_t run = 1; run <= kRuns; ++run) {
    program.run();
    program.synchronize();
    oracle.run();
    ASSERT_TRUE(same_bits(program, mix, oracle)) << "run " << run;
    int counting = 0;
    for (TensorId id = 0; id < mix.plan.tensors().size(); ++id) {
      if (!mix.plan.tensors()[id].tiled()) continue;
      for (const SemaphoreView& view : program.semaphores(id)) {
        EXPECT_EQ(view.count, view.base) << "run " << run;
        EXPECT_EQ(view.arrived(), 0);
        // Exactly the arrivals of every run, or none where nobody waits.
        const std::uint32_t counted = view.count - c.initial;
        if (counted == 0 && c.mode == Mode::kOverlap) continue;
        EXPECT_EQ(counted, run * view.target) << "run " << run;
        ++counting;
      }
    }
    EXPECT_GT(counting, 6);
  }
}

std::vector<WrapCase> wrap_cases() {
  std::vector<WrapCase> cases;
  for (const CpuWay way : {CpuWay::kThroughput, CpuWay::kExplore}) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
        for (const std::uint32_t initial : {0x7ffffffcU, 0xfffffffcU}) {
          cases.push_back({way, mode, submit, initial});
        }
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(AllWays, Wrap, testing::ValuesIn(wrap_cases()));

TEST(Wrap, RandomPlansCrossBothLimits) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const MixPlan mix = random_plan({.seed = seed});
    const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 5, .seed = seed});
    const std::uint32_t limit = seed % 2 == 0 ? 0x80000000U : 0U;
    const std::uint32_t initial = limit - 1 - static_cast<std::uint32_t>(seed % 3);
    ASSERT_TRUE(runs_like_the_oracle(*device, mix, {.initial_count = initial}));
  }
}

}  // namespace
}  // namespace tileweave

// AsyncStream on the emulated device: the bits of the host evaluation, memory that is reused late
// and never early, refusals that leave the stream usable, hangs, calls, traces.
#include "tileweave/runtime/async_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "tests/runtime/counting_device.h"
#include "tests/runtime/devices.h"
#include "tests/runtime/random_plan.h"
#include "tests/runtime/streamed_plan.h"

namespace tileweave {
namespace {

/// x -> node 0 -> v0 -> node 1 -> v1 -> ... -> z: rows of 2 of (8, 4), every value dropped early.
MixPlan long_chain(int length, std::int32_t num_streams = 2) {
  MixPlan mix;
  mix.plan.options() = {.name = "long chain", .num_streams = num_streams};
  const TileSet rows = TileSet::plain({{8, 4}, {2, 4}});
  TensorId from = add_filled(mix, {.name = "x", .shape = {8, 4}, .kind = TensorKind::kConstant}, 3);
  for (int i = 0; i < length; ++i) {
    const bool last = i + 1 == length;
    const TensorId to = add_value(mix, {.name = last ? "z" : "v" + std::to_string(i),
                                        .shape = {8, 4},
                                        .tiles = {2, 4},
                                        .output = last});
    add_mix(mix, {.name = "node " + std::to_string(i),
                  .inputs = {{.tensor = from, .kernel_tiles = rows}},
                  .outputs = {{.tensor = to, .kernel_tiles = rows}},
                  .num_works = 4,
                  .salt = static_cast<std::uint32_t>(i)});
    from = to;
  }
  return mix;
}

TEST(AsyncStream, GivesTheBitsOfTheOracleOnRandomPlansInEveryMode) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const MixPlan mix = random_plan({.seed = seed, .wait_first = WaitFirst::kLeftOut});
    const auto device = open_mix_device(
        {.way = CpuWay::kExplore, .num_sms = 5, .seed = seed, .delay_probability = 0.2});
    const auto in_flight = static_cast<std::int32_t>(1 + seed % 7);
    ASSERT_TRUE(streams_like_the_oracle(*device, mix, {.max_in_flight = in_flight}));
    ASSERT_TRUE(streams_like_the_oracle(*device, mix, {.mode = Mode::kSerial}));
    if (seed % 4 != 0) continue;
    const auto threads = open_mix_device({.num_sms = 3});
    ASSERT_TRUE(
        streams_like_the_oracle(*threads, mix, {.max_in_flight = in_flight}, Poison::kNewValues));
  }
}

TEST(AsyncStream, CountsCrossBothLimits) {
  for (const std::uint32_t initial : {0x7ffffffdU, 0xfffffffdU}) {
    const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 3});
    ASSERT_TRUE(streams_like_the_oracle(*device, long_chain(5), {.initial_count = initial}));
  }
}

TEST(AsyncStream, NumbersOfLaunchesStartAgainBeforeTheyOverflow) {
  const MixPlan mix = long_chain(5);
  for (const NodeId first : {(1 << 30) - 8, std::numeric_limits<NodeId>::max()}) {
    SCOPED_TRACE("first " + std::to_string(first));
    const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 3});
    StreamedPlan streamed(*device, mix, {.tracing = Tracing::kOn, .max_in_flight = 3}, Poison::kNo,
                          first);
    MixOracle oracle(mix);
    std::set<std::uint32_t> numbers;
    for (int run = 0; run < 6; ++run) {
      streamed.run();
      oracle.run();
      streamed.stream.synchronize();
      ASSERT_TRUE(streamed.same_bits(oracle)) << "run " << run;
      for (const TileRecord& record : streamed.stream.take_trace().records) {
        numbers.insert(record.node);
      }
    }
    EXPECT_TRUE(numbers.contains(0)) << "never started again";
    EXPECT_LT(*numbers.rbegin(), 1U << 31);
    EXPECT_LE(streamed.stream.num_in_flight(), 0);
  }
}

TEST(AsyncStream, MemoryIsReusedAfterMaxInFlightLaunchesAndNeverEarlier) {
  constexpr std::int32_t kInFlight = 3;
  const MixPlan mix = long_chain(40);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto device = open_mix_device(
        {.way = CpuWay::kExplore, .num_sms = 4, .seed = seed, .delay_probability = 0.4});
    StreamedPlan streamed(*device, mix, {.max_in_flight = kInFlight});
    streamed.addresses.clear();
    const std::size_t constants = streamed.stream.bytes_held();
    streamed.run();
    EXPECT_LE(streamed.stream.bytes_held(), constants + (kInFlight + 3) * 128);
    const std::vector<void*>& at = streamed.addresses;
    ASSERT_EQ(at.size(), 40U);
    EXPECT_LE(std::set<void*>(at.begin(), at.end()).size(), kInFlight + 3U);
    for (std::size_t i = 0; i < at.size(); ++i) {
      // v(i) is used last by node i + 1; the first node to start after that is i + 1 + kInFlight.
      for (std::size_t j = i + 1; j < std::min(at.size(), i + 1 + kInFlight); ++j) {
        EXPECT_NE(at[i], at[j]) << i << " and " << j;
      }
    }
    streamed.stream.synchronize();
    MixOracle oracle(mix);
    oracle.run();
    ASSERT_TRUE(streamed.same_bits(oracle));
  }
}

TEST(AsyncStream, UploadWaitsForKernelsThatHadTheMemoryBefore) {
  // On explore nothing runs before the host waits: an upload that did not wait would come first.
  const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 4});
  const MixPlan mix = long_chain(4);
  StreamedPlan streamed(*device, mix);
  streamed.addresses.clear();
  streamed.run();
  streamed.stream.begin_run();
  const StreamTensor next = streamed.stream.tensor({.name = "next", .shape = {8, 4}});
  ASSERT_EQ(next.address(), streamed.addresses[0]);
  const std::vector<std::uint32_t> junk(32, 0xdbdbdbdbU);
  streamed.stream.upload(next, junk.data());
  streamed.stream.end_run();
  streamed.stream.synchronize();
  MixOracle oracle(mix);
  oracle.run();
  ASSERT_TRUE(streamed.same_bits(oracle));
  std::vector<std::uint32_t> seen(32);
  streamed.stream.download(next, seen.data());
  EXPECT_EQ(seen, junk);
}

TEST(AsyncStream, AddressesFollowFromTheCallsAlone) {
  const MixPlan mix = random_plan({.seed = 11});
  std::vector<std::vector<std::size_t>> places;
  for (const std::uint64_t seed : {1U, 2U}) {
    const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 5, .seed = seed});
    StreamedPlan streamed(*device, mix, {.max_in_flight = 2});
    for (int run = 0; run < 4; ++run) {
      streamed.run();
      if (seed == 2) streamed.stream.synchronize();  // timing must not matter
    }
    std::map<void*, std::size_t> seen;
    std::vector<std::size_t>& place = places.emplace_back();
    for (void* address : streamed.addresses) {
      place.push_back(seen.try_emplace(address, seen.size()).first->second);
    }
  }
  EXPECT_EQ(places[0], places[1]);
}

TEST(AsyncStream, LongUseNeedsNoMoreMemoryAndLeaksNothing) {
  CountingDevice device(open_mix_device({.num_sms = 2}));
  {
    const MixPlan mix = long_chain(6);
    StreamedPlan streamed(device, mix, {.max_in_flight = 4});
    for (int run = 0; run < 3; ++run) streamed.run();
    const int live = device.live();
    const std::int32_t tensors = streamed.stream.tensors().size();
    for (int run = 0; run < 200; ++run) streamed.run();
    streamed.stream.synchronize();
    EXPECT_LE(device.live(), live + 1);
    EXPECT_EQ(streamed.stream.tensors().size(), tensors);
    EXPECT_EQ(streamed.stream.num_in_flight(), 0);
  }
  EXPECT_EQ(device.live(), 0);
}

TEST(AsyncStream, AKernelStartsOnlyWhenThoseMaxInFlightOlderHaveCompleted) {
  MixPlan mix;
  mix.plan.options() = {.name = "independent", .num_streams = 4};
  const TensorId x = add_filled(mix, {.name = "x", .shape = {4}, .kind = TensorKind::kConstant}, 3);
  for (int i = 0; i < 12; ++i) {
    const TensorId y = add_value(
        mix, {.name = "y" + std::to_string(i), .shape = {4}, .tiles = {4}, .output = true});
    add_mix(mix, {.name = "n" + std::to_string(i),
                  .inputs = {{.tensor = x}},
                  .outputs = {{.tensor = y}},
                  .cost = {.per_work = i % 4 == 0 ? 50.0 : 5.0}});
  }
  for (const std::int32_t limit : {1, 2, 3, 64}) {
    const auto device = open_mix_device({.way = CpuWay::kModel, .num_sms = 16});
    StreamedPlan streamed(*device, mix, {.tracing = Tracing::kOn, .max_in_flight = limit});
    streamed.run();
    streamed.stream.synchronize();
    std::map<std::uint32_t, TileRecord> of_node;
    const Trace trace = streamed.stream.take_trace();
    for (const TileRecord& record : trace.records) of_node[record.node] = record;
    ASSERT_EQ(of_node.size(), 12U);
    int together = 0;
    for (std::uint32_t i = 0; i < 12; ++i) {
      for (std::uint32_t j = i + 1; j < 12; ++j) {
        const bool overlap = of_node[j].begin_ns < of_node[i].end_ns;
        together += overlap ? 1 : 0;
        if (j - i >= static_cast<std::uint32_t>(limit)) {
          EXPECT_FALSE(overlap) << "limit " << limit << ": " << i << " and " << j;
        }
      }
    }
    EXPECT_EQ(together > 0, limit > 1) << "limit " << limit;
  }
}

TEST(AsyncStream, ARefusedLaunchEnqueuesNothingAndLeavesTheStreamUsable) {
  for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
    const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 3});
    const MixPlan mix = long_chain(3);
    StreamedPlan streamed(*device, mix, {.mode = mode});
    AsyncStream& stream = streamed.stream;
    EXPECT_THROW(streamed.launch(0), Error);  // no run
    EXPECT_THROW(stream.end_run(), Error);
    streamed.run();
    stream.begin_run();
    EXPECT_THROW(stream.begin_run(), Error);
    streamed.launch(0);
    const std::int64_t before = stream.num_in_flight();
    try {
      streamed.launch(2);  // reads v1, which nobody has written
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("v1"), std::string::npos) << error.what();
    }
    EXPECT_EQ(stream.num_in_flight(), before);
    EXPECT_THROW(streamed.launch(1), Error);  // the run's proof has ended
    stream.end_run();
    MixOracle oracle(mix);
    for (int run = 0; run < 3; ++run) {
      streamed.run();
      oracle.run();
      stream.synchronize();
      ASSERT_TRUE(streamed.same_bits(oracle)) << "run " << run;
    }
  }
}

TEST(AsyncStream, ANodeWhoseArgumentsCannotBeMadeCountsNothing) {
  const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 3});
  const MixPlan mix = long_chain(2);
  StreamedPlan streamed(*device, mix);
  AsyncStream& stream = streamed.stream;
  MixOracle oracle(mix);
  oracle.run();
  for (int round = 0; round < 3; ++round) {
    stream.begin_run();
    streamed.launch(0);
    NodeSpec broken = mix.specs()[1];
    for (OperandSpec& operand : broken.operands) {
      operand.tensor = streamed.tensor(operand.tensor).id();
    }
    broken.make_args = [](const Addresses&) -> std::vector<std::byte> {
      throw std::runtime_error("no arguments today");
    };
    EXPECT_THROW(stream.launch(broken), std::runtime_error);
    stream.end_run();
    stream.synchronize();
    streamed.run();
    stream.synchronize();
    ASSERT_TRUE(streamed.same_bits(oracle)) << "round " << round;
  }
}

TEST(AsyncStream, ArrivalsOfANodeThatWasNeverLaunchedAreNotCounted) {
  // Two nodes write halves of y together; the second one fails in the first run.
  MixPlan mix;
  const Shape shape{8, 4};
  const TensorId x = add_filled(mix, {.name = "x", .shape = {4}, .kind = TensorKind::kConstant}, 3);
  const TensorId y = add_value(mix, {.name = "y", .shape = shape, .tiles = {2, 4}, .output = true});
  for (const std::int64_t first_row : {0, 4}) {
    add_mix(mix,
            {.name = "rows from " + std::to_string(first_row),
             .inputs = {{.tensor = x}},
             .outputs = {{.tensor = y,
                          .kernel_tiles = TileSet::loose_table(shape, {{{first_row, 0}, {4, 4}}})}},
             .salt = static_cast<std::uint32_t>(first_row)});
  }
  const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 3});
  StreamedPlan streamed(*device, mix);
  AsyncStream& stream = streamed.stream;
  stream.begin_run();
  streamed.launch(0);
  NodeSpec broken = mix.specs()[1];
  for (OperandSpec& operand : broken.operands) {
    operand.tensor = streamed.tensor(operand.tensor).id();
  }
  broken.make_args = [](const Addresses&) -> std::vector<std::byte> {
    throw std::runtime_error("no arguments today");
  };
  EXPECT_THROW(stream.launch(broken), std::runtime_error);
  stream.end_run();
  stream.synchronize();
  const std::vector<std::uint32_t> expected = {1, 1, 0, 0};
  const auto views = stream.semaphores(streamed.tensor(y));
  for (std::size_t t = 0; t < 4; ++t) {
    EXPECT_EQ(views[t].count, expected[t]) << t;
    EXPECT_EQ(views[t].base, expected[t]) << t;
  }
}

TEST(AsyncStream, ADroppedTensorIsRefusedByName) {
  const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 3});
  const MixPlan mix = long_chain(2);
  StreamedPlan streamed(*device, mix);
  AsyncStream& stream = streamed.stream;
  stream.begin_run();
  NodeSpec node = mix.specs()[0];
  for (OperandSpec& operand : node.operands) operand.tensor = streamed.tensor(operand.tensor).id();
  node.operands[1].tensor = stream.tensor({.name = "gone", .shape = {8, 4}, .tiles = {2, 4}}).id();
  try {
    stream.launch(node);
    ADD_FAILURE() << "launched on memory that nobody holds";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("dropped `gone`"), std::string::npos) << error.what();
  }
  // Nothing was added to the run, so it goes on.
  streamed.launch(0);
  streamed.launch(1);
  stream.end_run();
  stream.synchronize();
  EXPECT_THROW(StreamTensor().id(), Error);
}

TEST(AsyncStream, ACallInTheMiddleHasFullDependenciesOnBothSides) {
  for (const CpuWay way : {CpuWay::kThroughput, CpuWay::kExplore}) {
    const auto device = open_mix_device({.way = way, .num_sms = 3});
    const MixPlan mix = long_chain(2);
    StreamedPlan streamed(*device, mix);
    AsyncStream& stream = streamed.stream;
    for (int run = 0; run < 3; ++run) {
      const StreamTensor x = streamed.tensor(0);
      const StreamTensor copy = stream.tensor({.name = "copy", .shape = {8, 4}, .tiles = {2, 4}});
      stream.begin_run();
      streamed.launch(0);
      NodeSpec second = mix.specs()[1];
      second.position = -1;  // after the call
      const StreamTensor v0 = streamed.tensor(mix.specs()[0].operands[1].tensor);
      stream.call("copy", {v0.id()}, {copy.id()},
                  [&, from = v0.address(), to = copy.address()](NativeStream) {
                    std::vector<std::byte> bytes(128);
                    device->download(bytes.data(), from, 128);
                    device->upload(to, bytes.data(), 128);
                  });
      for (OperandSpec& operand : second.operands) {
        operand.tensor = streamed.tensor(operand.tensor).id();
      }
      second.operands[0].tensor = copy.id();
      stream.launch(second);
      stream.end_run();
      stream.synchronize();
      MixOracle oracle(mix);
      oracle.run();
      ASSERT_TRUE(streamed.same_bits(oracle)) << "run " << run;
    }
    EXPECT_THROW(stream.call("nothing", {}, {}, nullptr), Error);
  }
}

TEST(AsyncStream, AHangNamesThisRunsKernelTileAndIsRecoveredFrom) {
  for (const CpuWay way : {CpuWay::kThroughput, CpuWay::kExplore}) {
    TwoNodes two;
    const TensorId broken =
        add_filled(two.mix, {.name = "broken", .shape = {1}, .kind = TensorKind::kConstant}, 9);
    two.first.fault = MixFault::kSkipSignal;
    two.first.fault_work = 2;
    two.first.fault_switch = broken;
    const MixPlan& mix = two.done();
    const auto device = open_mix_device({.way = way, .num_sms = 2});
    StreamedPlan streamed(*device, mix, {.deadline_ns = 50'000'000});
    AsyncStream& stream = streamed.stream;
    MixOracle oracle(mix);
    oracle.run();
    for (int round = 0; round < 3; ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      const std::uint32_t sound = 0;
      const std::uint32_t faulty = 1;
      stream.upload(streamed.tensor(broken), &sound);
      for (int run = 0; run < 3; ++run) streamed.run();
      stream.synchronize();
      ASSERT_TRUE(streamed.same_bits(oracle));
      stream.upload(streamed.tensor(broken), &faulty);
      streamed.run();
      EXPECT_THROW(stream.synchronize(), Error);
      ASSERT_TRUE(stream.poisoned());
      ASSERT_TRUE(stream.hang().has_value());
      EXPECT_EQ(stream.hang()->node, "second");
      EXPECT_EQ(stream.hang()->tensor, "y");
      ASSERT_EQ(stream.hang()->missing.size(), 1U) << stream.hang()->sentence;
      EXPECT_NE(stream.hang()->missing[0].find("kernel tile (2, 0)"), std::string::npos);
      EXPECT_NE(stream.hang()->missing[0].find("(4 of 4 blocks began)"), std::string::npos);
      EXPECT_THROW(stream.begin_run(), Error);
      stream.recover();
      EXPECT_FALSE(stream.poisoned());
    }
  }
}

TEST(AsyncStream, RecoversInTheMiddleOfARun) {
  TwoNodes two;
  two.first.fault = MixFault::kSkipSignal;
  const MixPlan& mix = two.done();
  const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 2});
  StreamedPlan streamed(*device, mix);
  AsyncStream& stream = streamed.stream;
  for (int round = 0; round < 3; ++round) {
    stream.begin_run();
    streamed.launch(0);
    streamed.launch(1);
    EXPECT_THROW(stream.synchronize(), Error);
    EXPECT_THROW(stream.end_run(), Error);
    stream.recover();
  }
  stream.recover();  // of nothing
  stream.begin_run();
  streamed.launch(0);
  stream.end_run();
  stream.synchronize();
}

TEST(AsyncStream, SemaphoresCountEveryRun) {
  const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 3});
  const MixPlan mix = long_chain(2);
  StreamedPlan streamed(*device, mix);
  const TensorId z = mix.specs()[1].operands[1].tensor;
  EXPECT_THROW(streamed.stream.semaphores(streamed.tensor(z)), Error);
  for (std::uint32_t run = 1; run <= 4; ++run) {
    streamed.run();
    streamed.stream.synchronize();
    const auto views = streamed.stream.semaphores(streamed.tensor(z));
    ASSERT_EQ(views.size(), 4U);
    for (const SemaphoreView& view : views) {
      EXPECT_EQ(view.count, run);
      EXPECT_EQ(view.base, run);
      EXPECT_EQ(view.target, 1U);
    }
  }
}

TEST(AsyncStream, TraceArrowsStayWithinARun) {
  const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 3});
  const MixPlan mix = long_chain(2);
  StreamedPlan streamed(*device, mix, {.tracing = Tracing::kOn});
  for (int run = 0; run < 3; ++run) streamed.run();
  streamed.stream.synchronize();
  const Trace trace = streamed.stream.take_trace();
  EXPECT_EQ(trace.records.size(), 3U * 8U);
  EXPECT_EQ(trace.arrows.size(), 3U * 4U);
  for (const auto& arrow : trace.arrows) {
    EXPECT_EQ(trace.records[arrow.from_record].node + 1, trace.records[arrow.to_record].node);
  }
  StreamedPlan untraced(*device, mix);
  EXPECT_THROW(untraced.stream.take_trace(), Error);
}

TEST(AsyncStream, WrapsTheUsersMemoryAndLeavesItToTheUser) {
  CountingDevice device(open_mix_device({.way = CpuWay::kExplore, .num_sms = 3}));
  void* mine[2] = {device.allocate(128), device.allocate(128)};
  {
    const MixPlan mix = long_chain(1);
    StreamedPlan streamed(device, mix);
    AsyncStream& stream = streamed.stream;
    MixOracle oracle(mix);
    oracle.run();
    const std::size_t held = stream.bytes_held();
    for (int run = 0; run < 4; ++run) {
      const StreamTensor z = stream.wrap(
          {.name = "z", .shape = {8, 4}, .dtype = DType::kU32, .tiles = {2, 4}}, mine[run % 2]);
      EXPECT_EQ(z.address(), mine[run % 2]);
      device.fill(mine[run % 2], 0, 128);
      NodeSpec node = mix.specs()[0];
      for (OperandSpec& operand : node.operands) {
        if (operand.access == Access::kRead) operand.tensor = streamed.tensor(operand.tensor).id();
      }
      node.operands[1].tensor = z.id();
      stream.begin_run();
      stream.launch(node);
      stream.end_run();
      stream.synchronize();
      std::vector<std::uint32_t> seen(32);
      device.download(seen.data(), mine[run % 2], 128);
      EXPECT_EQ(seen, oracle.values(mix.specs()[0].operands[1].tensor));
    }
    EXPECT_EQ(stream.bytes_held(), held);
    EXPECT_THROW(stream.wrap({.name = "nowhere", .shape = {4}}, nullptr), Error);
  }
  device.release(mine[0]);
  device.release(mine[1]);
  EXPECT_EQ(device.live(), 0);
}

TEST(AsyncStream, ATensorInPlaceKeepsItsOwnersMemory) {
  const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 3});
  AsyncStream stream(*device);
  StreamTensor x = stream.tensor({.name = "x", .shape = {8, 4}});
  StreamTensor y = stream.tensor({.name = "y", .shape = {8, 4}, .shares_buffer_with = x.id()});
  EXPECT_EQ(x.address(), y.address());
  EXPECT_EQ(stream.bytes_held(), 128U);
  const TensorId owner = x.id();
  x = {};
  stream.begin_run();
  stream.end_run();
  stream.begin_run();
  const StreamTensor other = stream.tensor({.name = "x", .shape = {8, 4}});
  EXPECT_NE(other.address(), y.address());
  EXPECT_THROW(stream.tensor({.name = "z", .shape = {8, 4}, .shares_buffer_with = owner}), Error);
  void* shared = y.address();
  y = {};
  stream.end_run();
  stream.begin_run();
  const StreamTensor third = stream.tensor({.name = "third", .shape = {8, 4}});
  EXPECT_EQ(third.address(), shared);
  stream.end_run();
}

TEST(AsyncStream, CheckingViewsSeeTheirOwnTableWhileTensorsAreMade) {
  const auto device = open_mix_device({.num_sms = 3, .check_views = CheckViews::kOn});
  ASSERT_TRUE(streams_like_the_oracle(*device, long_chain(60), {.max_in_flight = 5}));
}

TEST(AsyncStream, HandlesMayOutliveTheStream) {
  const auto device = open_mix_device({.num_sms = 2});
  StreamTensor x;
  {
    AsyncStream stream(*device);
    x = stream.tensor({.name = "x", .shape = {4}});
  }
  EXPECT_EQ(x.bytes(), 16U);
}

TEST(AsyncStream, OptionsThatCannotWorkAreRefused) {
  CountingDevice device(open_mix_device({.num_sms = 2}));
  for (const AsyncStreamOptions& options : std::vector<AsyncStreamOptions>{
           {.num_streams = 0},
           {.num_streams = -1},
           {.num_streams = device.limits().hardware_queues + 1},
           {.num_streams = 1'000'000'000},
           {.num_streams = 1'000'000'000, .run = {.starvation = StarvationCheck::kOff}},
           {.first_node = -1},
           {.run = {.max_in_flight = 0}}}) {
    EXPECT_THROW(AsyncStream(device, options), Error) << options.num_streams;
  }
  AsyncStream stream(device, {});
  const std::size_t held = stream.bytes_held();
  EXPECT_THROW(stream.tensor({.name = "huge", .shape = {std::int64_t{1} << 50}}), Error);
  EXPECT_THROW(stream.tensor({.name = "none", .shape = {0}}), Error);
  EXPECT_EQ(stream.bytes_held(), held);
}

}  // namespace
}  // namespace tileweave

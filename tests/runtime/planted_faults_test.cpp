// Faults that show only at run time, planted with the checks off: `explore` names them at once.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/runtime/devices.h"
#include "tests/runtime/property.h"
#include "tileweave/core/target.h"

namespace tileweave {
namespace {

constexpr RunOptions kUnchecked{.starvation = StarvationCheck::kOff,
                                .contracts = ContractCheck::kOff};

/// Runs once; the sentence of the Error, empty when the run went well.
std::string sentence_of_run(Program& program) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    program.run();
    program.synchronize();
    return "";
  } catch (const Error& error) {
    EXPECT_LT(seconds_since(begin), 1.0);
    EXPECT_TRUE(program.poisoned());
    return error.what();
  }
}

testing::AssertionResult says(const std::string& sentence,
                              const std::vector<std::string>& expected) {
  for (const std::string& part : expected) {
    if (sentence.find(part) == std::string::npos) {
      return testing::AssertionFailure() << "no \"" << part << "\" in \"" << sentence << "\"";
    }
  }
  return testing::AssertionSuccess();
}

/// One planted plan on the exploring device under ten seeds.
void each_seed_says(const MixPlan& mix, const RunOptions& options, std::int32_t num_sms,
                    const std::vector<std::string>& expected) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto device =
        open_mix_device({.way = CpuWay::kExplore, .num_sms = num_sms, .seed = seed});
    Program program(*device, mix.plan, options);
    upload(program, mix);
    EXPECT_TRUE(says(sentence_of_run(program), expected));
  }
}

/// Faults that are data races: ThreadSanitizer ends the test with them, before it sees their
/// effect.
class PlantedRaces : public testing::Test {
 protected:
  void SetUp() override {
    if (TW_TSAN) GTEST_SKIP() << "the planted fault is a data race, and ThreadSanitizer says so";
  }
};

TEST(PlantedFaults, AMissingSignalIsNamedWithTileCountsAndCulprit) {
  TwoNodes two;
  two.first.fault = MixFault::kSkipSignal;
  two.first.fault_work = 2;
  each_seed_says(two.done(), {}, 2,
                 {"deadlock", "`second`", "tile (2, 0) of `y`", "0 of 1 arrivals",
                  "missing: kernel tile (2, 0) of node 0 `first` (4 of 4 blocks began)"});
}

TEST(PlantedFaults, ATargetOneTooHighIsNamedAsSuch) {
  TwoNodes two;
  two.second.inputs[0].target = TargetMap::constant(2);
  each_seed_says(two.done(), kUnchecked, 2,
                 {"deadlock", "`second`", "of `y`", "1 of 2 arrivals",
                  "every kernel tile that was declared has arrived, so the target is too high"});
}

TEST(PlantedFaults, ABlockThatNeverEndsIsNamedBesideItsWaiter) {
  TwoNodes two;
  two.first.fault = MixFault::kNeverEnds;
  two.first.fault_work = 1;
  each_seed_says(two.done(), {}, 2, {"deadlock", "`first`", "shared-memory ring"});
}

TEST(PlantedFaults, AWaitForALaterNodeIsNamed) {
  TwoNodes two;
  const TileSet rows = TileSet::plain({{8, 4}, {2, 4}});
  two.first.inputs[0] = {.tensor = two.y, .kernel_tiles = rows, .target = TargetMap::constant(1)};
  two.second.inputs[0] = {.tensor = two.x, .kernel_tiles = rows};
  std::swap(two.first.outputs, two.second.outputs);
  // One block fills an SM: where those of `first` come first, `second` never gets one.
  two.first.resources.shared_bytes = two.second.resources.shared_bytes = 150'000;
  const MixPlan& mix = two.done();
  int deadlocks = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 2, .seed = seed});
    Program program(*device, mix.plan, kUnchecked);
    upload(program, mix);
    const std::string sentence = sentence_of_run(program);
    if (sentence.empty()) continue;
    ++deadlocks;
    EXPECT_TRUE(says(sentence, {"deadlock", "`first`", "of `y`", "0 of 1 arrivals",
                                "of node 1 `second`", "no SM has room for blocks of"}));
  }
  EXPECT_GT(deadlocks, 5);
}

TEST(PlantedFaults, AConsumerThatFillsEverySmIsNamedWithTheProducerItStarves) {
  TwoNodes two;
  two.second.resources.shared_bytes = two.first.resources.shared_bytes = 150'000;
  const MixPlan& mix = two.done();
  EXPECT_THROW(
      {
        MixPlan refused = mix;
        refused.plan.options().edge.if_ungrounded = IfUngrounded::kRefuse;
        const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 2});
        Program program(*device, refused.plan);
      },
      Error);
  int deadlocks = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 2, .seed = seed});
    Program program(*device, mix.plan, {.starvation = StarvationCheck::kOff});
    upload(program, mix);
    const std::string sentence = sentence_of_run(program);
    if (sentence.empty()) continue;
    ++deadlocks;
    EXPECT_TRUE(says(sentence, {"deadlock", "`second`", "of `y`", "no SM has room for blocks of",
                                "`first`", "blocks began"}));
  }
  EXPECT_GT(deadlocks, 5);
  // With the check on the edge becomes a full dependency, and every seed runs.
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto device = open_mix_device({.way = CpuWay::kExplore, .num_sms = 2, .seed = seed});
    EXPECT_TRUE(runs_like_the_oracle(*device, mix, {}));
  }
}

TEST_F(PlantedRaces, AnOrderThatIsNoPermutationLeavesAConsumerWaiting) {
  TwoNodes two;
  two.first.order = TileOrder::table({0, 1, 1, 3});
  each_seed_says(two.done(), kUnchecked, 2,
                 {"deadlock", "`second`", "tile (2, 0) of `y`", "0 of 1 arrivals",
                  "missing: kernel tile (2, 0) of node 0 `first`"});
}

/// How many of the first `num_seeds` exploring seeds give other bits than the host.
int wrong_runs(const MixPlan& mix, const RunOptions& options, int num_seeds) {
  int wrong = 0;
  for (int seed = 1; seed <= num_seeds; ++seed) {
    const auto device = open_mix_device({.way = CpuWay::kExplore,
                                         .num_sms = 4,
                                         .seed = static_cast<std::uint64_t>(seed),
                                         .delay_probability = 0.3});
    Program program(*device, mix.plan, options);
    upload(program, mix);
    MixOracle oracle(mix);
    oracle.run();
    EXPECT_EQ(sentence_of_run(program), "");
    wrong += same_bits(program, mix, oracle) ? 0 : 1;
  }
  return wrong;
}

TEST_F(PlantedRaces, ABufferReusedTooEarlyGivesWrongBits) {
  TwoNodes two(3);
  const TileSet rows = TileSet::plain({{8, 4}, {2, 4}});
  MixPlan& mix = two.mix;
  add_mix(mix, two.first);
  const TensorId over = add_value(
      mix, {.name = "over y", .shape = {8, 4}, .shares_buffer_with = two.y, .output = true});
  add_mix(mix, two.second);
  add_mix(mix, {.name = "third",
                .inputs = {{.tensor = two.x, .kernel_tiles = rows}},
                .outputs = {{.tensor = over, .kernel_tiles = rows}},
                .num_works = 4,
                .salt = 3});
  EXPECT_GT(wrong_runs(mix, kUnchecked, 20), 3);
}

TEST_F(PlantedRaces, ASignalBeforeTheWriteGivesWrongBits) {
  TwoNodes two;
  EXPECT_EQ(wrong_runs(TwoNodes().done(), {}, 60), 0);
  two.first.fault = MixFault::kSignalEarly;
  EXPECT_GT(wrong_runs(two.done(), {}, 60), 3);
}

TEST_F(PlantedRaces, AReadBeforeTheWaitGivesWrongBits) {
  TwoNodes two;
  two.second.fault = MixFault::kReadEarly;
  EXPECT_GT(wrong_runs(two.done(), {}, 60), 3);
}

TEST(PlantedFaults, CheckingViewsNameEveryAccessThatBreaksTheDeclaration) {
  for (const MixFault fault :
       {MixFault::kSignalEarly, MixFault::kReadEarly, MixFault::kWriteOutside}) {
    SCOPED_TRACE(static_cast<int>(fault));
    TwoNodes two;
    MixNode& node = fault == MixFault::kReadEarly ? two.second : two.first;
    node.fault = fault;
    node.fault_work = 1;
    const MixPlan& mix = two.done();
    const auto device =
        open_mix_device({.way = CpuWay::kExplore, .num_sms = 2, .check_views = CheckViews::kOn});
    Program program(*device, mix.plan);
    upload(program, mix);
    program.run();
    try {
      program.synchronize();
      ADD_FAILURE() << "nothing was found";
    } catch (const Error& error) {
      EXPECT_TRUE(says(error.what(), {node.name})) << error.what();
    }
  }
}

}  // namespace
}  // namespace tileweave

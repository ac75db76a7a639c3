#include "tileweave/plan/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "tests/plan/chain_plans.h"
#include "tests/plan/small_plans.h"
#include "tileweave/core/error.h"

namespace tileweave::testing {
namespace {

const Shape kRows = {4, 8};

TileSet rows() {
  return grid(kRows, {1, 8});
}

/// The one fault of a plan, or what there was instead.
Fault only_fault(const Plan& plan, FaultKind kind) {
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  EXPECT_EQ(verdict.faults.size(), 1U) << sentences(verdict.faults);
  if (verdict.faults.empty()) return {kind, "", -1, kNoTensor, -1};
  EXPECT_EQ(verdict.faults[0].kind, kind) << name_of(verdict.faults[0].kind);
  return verdict.faults[0];
}

TEST(Verify, ABlockThatFitsNoSmIsNamedWithItsNumbers) {
  const Plan plan =
      chain({.num_nodes = 1, .blocks = 4, .resources = {.threads = 128, .shared_bytes = 240'000}});
  const Fault fault = only_fault(plan, FaultKind::kBlockFitsNoSm);
  EXPECT_EQ(fault.sentence,
            "node 0 `n0` fits no SM of H200: a block needs 240000 bytes of shared memory, the "
            "device allows 232448");
  EXPECT_EQ(fault.node, 0);
}

TEST(Verify, FaultsOfTheContractComeThrough) {
  Plan plan;
  const TensorId y = plan.tensor({.name = "Y", .shape = kRows, .tiles = {2, 8}});
  OperandSpec reading = read(y, {}, 0);
  reading.target = TargetMap::constant(3);
  plan.add(node("make", 4, {write(y, rows(), 0)}));
  plan.add(node("use", 1, {reading, write(plan.tensor({.name = "Z", .shape = kRows}))}));
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  EXPECT_TRUE(has_kind(verdict.faults, FaultKind::kTooFewArrivals)) << sentences(verdict.faults);
  EXPECT_TRUE(verdict.edges.empty());
}

TEST(Verify, ThrowsTheFirstSentenceAndCountsTheOthers) {
  const Plan plan =
      chain({.num_nodes = 3, .blocks = 4, .resources = {.threads = 128, .shared_bytes = 240'000}});
  try {
    throw_if_faulty(verify(plan, {.device = h200_limits()}), plan);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "verify plan `plan`: node 0 `n0` fits no SM of H200: a block needs 240000 bytes "
                 "of shared memory, the device allows 232448 (and 2 more faults)");
  }
}

/// Y is made row by row; `norm` reads it; `add` writes V into Y's buffer from what `norm` made.
struct InPlace {
  Plan plan{{.num_streams = 2}};
  TensorId y, n, v;

  explicit InPlace(bool add_reads_norm) {
    y = plan.tensor({.name = "Y", .shape = kRows, .tiles = {1, 8}});
    n = plan.tensor({.name = "N", .shape = kRows, .tiles = {1, 8}});
    v = plan.tensor({.name = "V", .shape = kRows, .tiles = {1, 8}, .shares_buffer_with = y});
    plan.add(node("make", 4, {write(y, rows(), 0)}));
    plan.add(node("norm", 4, {read(y, rows(), 0), write(n, rows(), 1)}));
    std::vector<OperandSpec> operands = {read(y, rows(), 0), write(v, rows(), 1)};
    if (add_reads_norm) operands.push_back(read(n, rows(), 2));
    plan.add(node("add", 4, operands));
  }
};

TEST(Verify, RowsMayBeOverwrittenByTheWorkThatWaitedForTheirReaders) {
  const InPlace in_place(true);
  const Verdict verdict = verify(in_place.plan, {.device = h200_limits()});
  EXPECT_TRUE(verdict.ok()) << sentences(verdict.faults);
}

TEST(Verify, ABufferThatAReaderStillNeedsIsReusedEarly) {
  const InPlace in_place(false);
  const Fault fault = only_fault(in_place.plan, FaultKind::kBufferReusedEarly);
  EXPECT_EQ(fault.sentence,
            "work 0 of node 2 `add` at position 2 writes [0:1, 0:8] of `V` into the buffer of "
            "`Y`, which work 0 of node 1 `norm` at position 1 reads there without being ordered "
            "before it");
  EXPECT_EQ(fault.node, 2);
  EXPECT_EQ(fault.tensor, in_place.v);
}

TEST(Verify, ALaterReaderOfTheOverwrittenTensorIsNamed) {
  InPlace in_place(true);
  const TensorId w = in_place.plan.tensor({.name = "W", .shape = kRows, .tiles = {1, 8}});
  in_place.plan.add(node("late", 4, {read(in_place.y, rows(), 0), write(w, rows(), 1)}));
  const Fault fault = only_fault(in_place.plan, FaultKind::kBufferReusedEarly);
  EXPECT_EQ(fault.sentence,
            "work 0 of node 2 `add` at position 2 writes [0:1, 0:8] of `V` into the buffer of "
            "`Y`, which work 0 of node 3 `late` at position 3 reads there later");
}

TEST(Verify, WorksOfOneNodeMustNotOverwriteWhatOthersOfItRead) {
  Plan plan({.num_streams = 2});
  const TensorId y = plan.tensor({.name = "Y", .shape = kRows, .tiles = {1, 8}});
  const TensorId v = plan.tensor({.name = "V", .shape = kRows, .shares_buffer_with = y});
  plan.add(node("make", 4, {write(y, rows(), 0)}));
  plan.add(node("mix", 4, {read(y, {}, 0), write(v, rows())}));
  const Fault fault = only_fault(plan, FaultKind::kBufferReusedEarly);
  EXPECT_EQ(fault.sentence,
            "work 0 of node 1 `mix` at position 1 writes [0:1, 0:8] of `V` into the buffer of "
            "`Y`, which work 1 of the same node reads there in any order");
}

TEST(Verify, AStateIsOverwrittenOnlyAfterItsEarlierReaders) {
  Plan plan({.num_streams = 2});
  const TensorId s = plan.tensor({.name = "S", .shape = kRows, .kind = TensorKind::kState});
  const TensorId z = plan.tensor({.name = "Z", .shape = kRows});
  plan.add(node("peek", 1, {read(s), write(z)}));
  plan.add(node("poke", 1, {write(s)}));
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_TRUE(verdict.ok()) << sentences(verdict.faults);
  ASSERT_EQ(verdict.schedule.nodes[1].after.size(), 1U);
  EXPECT_EQ(verdict.schedule.nodes[1].after[0].release, Release::kCompleted);
  ASSERT_EQ(verdict.edges.size(), 1U);
  EXPECT_EQ(verdict.edges[0].why, "overwrites what node 0 `peek` reads of `S`");
}

TEST(Verify, TheReportIsATable) {
  const Plan plan = chain({.num_nodes = 2, .blocks = 128, .resources = kDeepRing});
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  EXPECT_EQ(verdict.table(plan),
            "from         to           tensor  requested  edge  start rule  ground    why\n"
            "node 0 `n0`  node 1 `n1`  `X0`    tile       tile  none        capacity  4 of 132 "
            "SMs keep room for a block of node 0 `n0` beside 128 blocks of node 1 `n1`\n");
}

TEST(Verify, ThreeHundredNodesTakeLessThanASecond) {
  Plan plan({.num_streams = 2});
  for (int n = 0; n < 300; ++n) add_link(plan, {.blocks = 132, .resources = kHalfSm});
  const auto start = std::chrono::steady_clock::now();
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  const MemoryPlan memory = plan_memory(plan, HappensBefore(plan, verdict.schedule));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_TRUE(verdict.ok());
  EXPECT_EQ(verdict.num_downgrades(), 0);
  EXPECT_LT(memory.arena_bytes, memory.bytes_without_reuse / 50);
  // Sanitizers and a loaded machine stretch it; what must not happen is a bad power.
  EXPECT_LT(took.count(), 20.0);
  RecordProperty("seconds", std::to_string(took.count()));
}

TEST(Verify, OptionsThatSayNothingAreRefused) {
  const auto sentence = [](const Plan& plan, const VerifyOptions& options) -> std::string {
    try {
      verify(plan, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing thrown";
  };
  Plan plan = chain({.num_nodes = 1, .blocks = 1, .resources = kHalfSm});
  plan.nodes()[0].rank = 1;
  EXPECT_EQ(sentence(plan, {.device = h200_limits(), .device_of_rank = {0}}),
            "verify plan `plan`: a device for every rank (device_of_rank has 1 entries), got rank "
            "1");
  DeviceLimits none = h200_limits();
  none.num_sms = 0;
  EXPECT_EQ(sentence(plan, {.device = none}), "device `H200`: at least one SM, got 0");
  plan.options().num_streams = 0;
  EXPECT_EQ(sentence(plan, {.device = h200_limits()}), "plan `plan`: 1 to 256 streams, got 0");
}

TEST(Verify, SerialSchedulesUseOneStream) {
  const Plan plan = chain({.num_nodes = 3, .blocks = 1, .resources = kHalfSm});
  const Schedule schedule = serial_schedule(plan);
  EXPECT_EQ(schedule.num_streams, 1);
  ASSERT_EQ(schedule.nodes.size(), 3U);
  for (const ScheduledNode& node : schedule.nodes) EXPECT_EQ(node.stream, 0);
}

TEST(Verify, KnowsTensorsOverTheSameMemoryOnlyByTheirTiles) {
  // A pool that lives on and the rows of it that this run writes: one place, two tensors.
  std::vector<float> pool(64 * 8);
  Plan plan;
  const TensorId past = plan.tensor(
      {.name = "past", .shape = {64, 8}, .kind = TensorKind::kState, .address = pool.data()});
  const TensorId step =
      plan.tensor({.name = "step", .shape = kRows, .tiles = {1, 8}, .address = pool.data()});
  const TensorId z = plan.tensor({.name = "Z", .shape = kRows});
  OperandSpec old_rows = read(past);
  old_rows.when = ReadTime::kPrologue;
  plan.add(node("append", 4, {write(step, rows(), 0)}));
  plan.add(node("attend", 4, {old_rows, read(step, rows(), 0), write(z, rows())}));
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  EXPECT_TRUE(verdict.ok()) << sentences(verdict.faults);
  ASSERT_EQ(verdict.edges.size(), 1U);
  EXPECT_EQ(verdict.edges[0].kind, EdgeKind::kTile);
}

}  // namespace
}  // namespace tileweave::testing

#include "tileweave/plan/grounds.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/plan/adversary.h"
#include "tests/plan/chain_plans.h"
#include "tests/plan/random_graphs.h"
#include "tests/plan/small_plans.h"
#include "tileweave/core/error.h"

namespace tileweave::testing {
namespace {

const EdgeReport& edge(const Verdict& verdict, NodeId from, NodeId to) {
  for (const EdgeReport& report : verdict.edges) {
    if (report.from == from && report.to == to) return report;
  }
  static const EdgeReport none;
  ADD_FAILURE() << "no edge from " << from << " to " << to;
  return none;
}

TEST(Grounds, AConsumerThatFillsEverySmIsRefused) {
  const Plan plan = chain({.num_nodes = 2,
                           .blocks = 132,
                           .resources = kDeepRing,
                           .edge = {.if_ungrounded = IfUngrounded::kRefuse}});
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_EQ(verdict.faults.size(), 1U) << sentences(verdict.faults);
  EXPECT_EQ(verdict.faults[0].kind, FaultKind::kStarvation);
  EXPECT_EQ(verdict.faults[0].node, 1);
  EXPECT_EQ(verdict.faults[0].sentence,
            "node 1 `n1` can starve node 0 `n0`: 132 blocks of node 1 `n1` can leave no SM for a "
            "block of node 0 `n0`: 132 SMs, 1 block of node 1 `n1` fills one");
  EXPECT_THROW(throw_if_faulty(verdict, plan), Error);
}

TEST(Grounds, TheSameConsumerIsDowngradedByDefaultAndLetThroughWithTheCheckOff) {
  const Plan plan = chain({.num_nodes = 2, .blocks = 132, .resources = kDeepRing});
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_TRUE(verdict.ok()) << sentences(verdict.faults);
  EXPECT_EQ(verdict.num_downgrades(), 1);
  EXPECT_EQ(edge(verdict, 0, 1).kind, EdgeKind::kFull);
  EXPECT_EQ(edge(verdict, 0, 1).requested, EdgeKind::kTile);
  EXPECT_EQ(edge(verdict, 0, 1).why,
            "132 blocks of node 1 `n1` can leave no SM for a block of node 0 `n0`: 132 SMs, "
            "1 block of node 1 `n1` fills one");
  ASSERT_EQ(verdict.schedule.nodes[1].after.size(), 1U);
  EXPECT_EQ(verdict.schedule.nodes[1].after[0].on, 0);
  EXPECT_EQ(verdict.schedule.nodes[1].after[0].release, Release::kCompleted);

  const Verdict off = verify(plan, {.device = h200_limits(), .starvation = StarvationCheck::kOff});
  ASSERT_TRUE(off.ok());
  EXPECT_EQ(off.num_downgrades(), 0);
  EXPECT_EQ(edge(off, 0, 1).ground, Ground::kNone);
  EXPECT_TRUE(off.schedule.nodes[1].after.empty());
}

TEST(Grounds, TwoGemmsOfFourThirdsWavesHaveCapacityWhereTwoBlocksShareAnSm) {
  const Plan plan = chain({.num_nodes = 2, .blocks = 176, .resources = kHalfSm});
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_TRUE(verdict.ok()) << sentences(verdict.faults);
  EXPECT_EQ(verdict.num_downgrades(), 0);
  EXPECT_EQ(edge(verdict, 0, 1).ground, Ground::kCapacity);
  EXPECT_EQ(edge(verdict, 0, 1).why,
            "44 of 132 SMs keep room for a block of node 0 `n0` beside 176 blocks of node 1 `n1`");
}

TEST(Grounds, DeepRingsOf128BlocksHaveCapacityOnTwoStreams) {
  const Plan plan = chain({.num_nodes = 6, .blocks = 128, .resources = kDeepRing});
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_TRUE(verdict.ok()) << sentences(verdict.faults);
  EXPECT_EQ(verdict.num_downgrades(), 0);
  EXPECT_EQ(edge(verdict, 3, 4).ground, Ground::kCapacity);
  EXPECT_EQ(edge(verdict, 3, 4).why,
            "4 of 132 SMs keep room for a block of node 3 `n3` beside 128 blocks of node 4 `n4`");
}

TEST(Grounds, DeepRingsOf128BlocksAreHeldToTwoInFlightOnThreeStreams) {
  const Plan plan =
      chain({.num_nodes = 6, .blocks = 128, .resources = kDeepRing, .num_streams = 3});
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_TRUE(verdict.ok()) << sentences(verdict.faults);
  EXPECT_GT(verdict.num_downgrades(), 0);
  const EdgeReport& release = edge(verdict, 0, 2);
  EXPECT_EQ(release.kind, EdgeKind::kFull);
  EXPECT_EQ(release.tensor, kNoTensor);
  EXPECT_EQ(release.why,
            "128 blocks of node 2 `n2` and 128 blocks of node 1 `n1` can leave no SM for a block "
            "of node 0 `n0`: 132 SMs, 1 block of node 2 `n2` fills one, 1 block of node 1 `n1` "
            "fills one");
  EXPECT_EQ(edge(verdict, 1, 2).ground, Ground::kCapacity);
}

TEST(Grounds, ThreeStreamsAreGroundedByCountingOnceWaitKernelsStandBetween) {
  const Plan plan = chain({.num_nodes = 6,
                           .blocks = 128,
                           .resources = kDeepRing,
                           .num_streams = 3,
                           .edge = {.start = StartRule::kWaitAll}});
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_TRUE(verdict.ok()) << sentences(verdict.faults);
  EXPECT_EQ(verdict.num_downgrades(), 0) << verdict.table(plan);
  EXPECT_EQ(edge(verdict, 1, 2).ground, Ground::kCounted);
  EXPECT_EQ(edge(verdict, 1, 2).start, StartRule::kWaitAll);
  EXPECT_EQ(edge(verdict, 1, 2).why, "all 128 blocks of node 1 `n1` are counted as begun first");
  ASSERT_EQ(verdict.schedule.nodes[2].after.size(), 1U);
  EXPECT_EQ(verdict.schedule.nodes[2].after[0].release, Release::kAllBegun);
}

TEST(Grounds, LaunchCompletionIsAGroundOnlyWhereItIsTrusted) {
  for (const StartRule rule : {StartRule::kLaunchCompletion, StartRule::kWaitFirst}) {
    const Plan plan =
        chain({.num_nodes = 4, .blocks = 1000, .resources = kDeepRing, .edge = {.start = rule}});
    const Verdict doubted = verify(plan, {.device = h200_limits()});
    ASSERT_TRUE(doubted.ok());
    EXPECT_EQ(doubted.num_downgrades(), 3) << doubted.table(plan);
    const Verdict trusted =
        verify(plan, {.device = h200_limits(), .launch_order = LaunchOrder::kTrusted});
    ASSERT_TRUE(trusted.ok());
    EXPECT_EQ(trusted.num_downgrades(), 0) << trusted.table(plan);
    EXPECT_EQ(edge(trusted, 1, 2).ground, Ground::kOrdered);
    EXPECT_EQ(edge(trusted, 1, 2).start, rule);
  }
}

TEST(Grounds, ProgrammaticEdgesNeedNone) {
  const Plan plan = chain({.num_nodes = 8,
                           .blocks = 1000,
                           .resources = kDeepRing,
                           .edge = {.kind = EdgeKind::kProgrammatic}});
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(verdict.num_downgrades(), 0);
  for (const ScheduledNode& node : verdict.schedule.nodes) EXPECT_EQ(node.stream, 0);
  EXPECT_EQ(edge(verdict, 3, 4).kind, EdgeKind::kProgrammatic);
  EXPECT_EQ(edge(verdict, 3, 4).ground, Ground::kNotNeeded);
  EXPECT_EQ(edge(verdict, 3, 4).why, "every block waits for the grid dependency");
}

TEST(Grounds, FullEdgesWaitForEverythingBefore) {
  const Plan plan = chain({.num_nodes = 5,
                           .blocks = 1000,
                           .resources = kDeepRing,
                           .num_streams = 3,
                           .edge = {.kind = EdgeKind::kFull}});
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_TRUE(verdict.ok());
  const HappensBefore order(plan, verdict.schedule);
  for (NodeId j = 1; j < 5; ++j) {
    EXPECT_EQ(verdict.schedule.nodes[static_cast<std::size_t>(j)].after.size(), 1U);
    for (NodeId i = 0; i < j; ++i) EXPECT_TRUE(order.complete(i, j));
  }
}

TEST(Grounds, SmallerPartitionsAreVerifiedAgainWithTheirDowngradesListed) {
  const Plan plan = chain({.num_nodes = 3, .blocks = 48, .resources = kHalfSm});
  for (const auto& [num_sms, downgrades] :
       {std::pair(8, 2), std::pair(16, 2), std::pair(64, 0), std::pair(132, 0)}) {
    const Verdict verdict = verify(plan, {.device = partition(h200_limits(), num_sms)});
    ASSERT_TRUE(verdict.ok());
    EXPECT_EQ(verdict.num_downgrades(), downgrades) << num_sms << "\n" << verdict.table(plan);
    const std::string sms = std::to_string(num_sms) + " SMs";
    EXPECT_NE(verdict.table(plan).find(sms), std::string::npos) << verdict.table(plan);
  }
}

TEST(Grounds, AWaitKernelThatTakesTheLastSlotIsCounted) {
  // One SM with one slot: the wait kernel itself would keep the producer out.
  DeviceLimits one{.name = "one", .num_sms = 1, .blocks_per_sm = 1};
  const Plan plan = chain({.num_nodes = 2,
                           .blocks = 1,
                           .resources = {.threads = 32},
                           .edge = {.start = StartRule::kWaitAll}});
  const Verdict verdict = verify(plan, {.device = one});
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(edge(verdict, 0, 1).kind, EdgeKind::kFull);
  EXPECT_EQ(edge(verdict, 0, 1).start, StartRule::kNone);
  EXPECT_EQ(edge(verdict, 0, 1).why,
            "1 block of node 1 `n1` can leave no SM for a block of node 0 `n0`: 1 SM, 1 block of "
            "node 1 `n1` fills one; no start rule wait_all: 1 wait kernel can leave no SM for a "
            "block of node 0 `n0`: 1 SM, 1 block of a wait kernel fills one");
}

TEST(Grounds, ALaunchThatDoesNotFitMayNotStandBeforeTheOneItWaitsFor) {
  // The producer is small and always fits beside the consumer; not so the consumer's own blocks.
  DeviceLimits device = h200_limits();
  Plan plan({.num_streams = 2});
  add_link(plan, {.blocks = 4, .resources = {.threads = 32}});
  add_link(plan, {.blocks = 200, .resources = kDeepRing});
  const Verdict verdict = verify(plan, {.device = device});
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(edge(verdict, 0, 1).kind, EdgeKind::kFull);
  EXPECT_EQ(edge(verdict, 0, 1).why,
            "not all 200 blocks of node 1 `n1` surely find an SM beside 200 blocks of node 1 "
            "`n1` (132 SMs, 1 block of node 1 `n1` fills one), and node 0 `n0` may queue behind "
            "it");
}

TEST(Grounds, RanksThatShareADeviceAddUp) {
  const auto plan_of = [](std::int32_t num_ranks) {
    Plan plan({.num_streams = 2});
    for (std::int32_t position = 0; position < 2; ++position) {
      for (std::int32_t rank = 0; rank < num_ranks; ++rank) {
        const std::int64_t rows = 60;
        const std::string of = std::to_string(rank);
        if (position == 0) {
          plan.tensor({.name = "a" + of, .shape = {rows, 8}, .tiles = {rows, 8}});
        } else {
          plan.tensor({.name = "b" + of, .shape = {rows, 8}, .output = true});
        }
        NodeSpec spec =
            position == 0
                ? node("make" + of, rows, {write(rank, grid({rows, 8}, {1, 8}), 0)})
                : node("use" + of, rows,
                       {read(rank, {}, 0), write(num_ranks + rank, grid({rows, 8}, {1, 8}))});
        spec.rank = rank;
        spec.position = position;
        spec.resources = kDeepRing;
        plan.add(spec);
      }
    }
    return plan;
  };
  // Beside `make0`: 60 blocks of use0 and 60 of use1, and make1 which does not wait: 120 < 132.
  EXPECT_EQ(verify(plan_of(2), {.device = h200_limits()}).num_downgrades(), 0);
  const Plan three = plan_of(3);
  const Verdict shared = verify(three, {.device = h200_limits()});
  ASSERT_TRUE(shared.ok()) << sentences(shared.faults);
  EXPECT_GT(shared.num_downgrades(), 0) << shared.table(three);
  EXPECT_EQ(verify(three, {.device = h200_limits(), .device_of_rank = {0, 1, 2}}).num_downgrades(),
            0);
}

TEST(Grounds, MoreStreamsThanHardwareQueuesAreAFault) {
  const Plan plan = chain({.num_nodes = 2, .blocks = 1, .resources = kDeepRing, .num_streams = 9});
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_EQ(verdict.faults.size(), 1U);
  EXPECT_EQ(verdict.faults[0].sentence,
            "9 streams (1 rank with 9 each) share 8 hardware queues of H200: a node can stand in "
            "a queue behind one that waits for it");
}

TEST(Grounds, AnAbsurdNumberOfStreamsIsRefusedWhateverIsChecked) {
  for (const std::int32_t streams : {0, -1, kMaxStreams + 1, 1'000'000'000}) {
    const Plan plan = chain({.num_nodes = 2, .num_streams = streams});
    EXPECT_THROW(verify(plan, {.device = h200_limits(), .starvation = StarvationCheck::kOff}),
                 Error)
        << streams;
  }
  const Plan most = chain({.num_nodes = 2, .num_streams = kMaxStreams});
  EXPECT_TRUE(verify(most, {.device = h200_limits(), .starvation = StarvationCheck::kOff}).ok());
}

TEST(Grounds, UnintegratedOperatorsAreFullOnBothSides) {
  Plan plan({.num_streams = 2});
  add_link(plan, {.blocks = 4, .resources = kHalfSm});
  NodeSpec call = node("call", 1, {read(0), write(plan.tensor({.name = "C", .shape = {4, 8}}))});
  call.integrated = false;
  call.kernel.clear();
  call.make_args = nullptr;
  plan.add(call);
  NodeSpec after = node("after", 1, {read(1), write(plan.tensor({.name = "D", .shape = {4, 8}}))});
  after.edge = EdgePolicy{.kind = EdgeKind::kProgrammatic};
  plan.add(after);
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_TRUE(verdict.ok()) << sentences(verdict.faults);
  EXPECT_EQ(edge(verdict, 0, 1).kind, EdgeKind::kFull);
  EXPECT_EQ(edge(verdict, 1, 2).kind, EdgeKind::kFull);
  EXPECT_EQ(edge(verdict, 1, 2).why, "node 1 `call` is not integrated: full on both sides");
}

TEST(Grounds, AReaderWithoutSemaphoresWaitsForCompletion) {
  Plan plan({.num_streams = 2});
  const TensorId y = plan.tensor({.name = "Y", .shape = {4, 8}});
  const TensorId z = plan.tensor({.name = "Z", .shape = {4, 8}});
  plan.add(node("make", 4, {write(y, grid({4, 8}, {1, 8}))}));
  plan.add(node("use", 4, {read(y), write(z, grid({4, 8}, {1, 8}))}));
  const Verdict verdict = verify(plan, {.device = h200_limits()});
  ASSERT_TRUE(verdict.ok()) << sentences(verdict.faults);
  EXPECT_EQ(edge(verdict, 0, 1).kind, EdgeKind::kFull);
  EXPECT_EQ(edge(verdict, 0, 1).why, "no waits cover what it reads of `Y`");
  EXPECT_EQ(verdict.schedule.nodes[1].after.at(0).release, Release::kCompleted);
}

struct Tally {
  int finished = 0;
  int gave_up = 0;
  int downgraded = 0;
  int needless = 0;  // downgraded, and no deadlock to be found without
  int rightly = 0;   // downgraded, and deadlock found without
};

/// Plays what verify() let through against the adversary; returns false at the first deadlock.
Tally play(std::uint32_t first_seed, int num_plans, std::size_t max_states) {
  Tally tally;
  for (int c = 0; c < num_plans; ++c) {
    const std::uint32_t seed = first_seed + static_cast<std::uint32_t>(c);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto pick = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    const DeviceLimits device{.name = "tiny",
                              .num_sms = pick(1, 3),
                              .threads_per_sm = 256,
                              .blocks_per_sm = pick(1, 3),
                              .shared_bytes_per_sm = 6,
                              .shared_bytes_per_block = 6,
                              .shared_unit = 1,
                              .shared_reserved = pick(0, 1)};
    const Plan plan = random_graph(
        random, {.num_streams = pick(2, 3),
                 .max_shared_bytes =
                     static_cast<int>(device.shared_bytes_per_sm - device.shared_reserved)});
    const Verdict verdict = verify(plan, {.device = device});
    EXPECT_TRUE(verdict.ok()) << sentences(verdict.faults);
    const Queueing queueing = pick(0, 1) == 0 ? Queueing::kAnyLaunch : Queueing::kHeadOfQueue;
    const Outcome outcome = Adversary(plan, verdict.schedule, device, queueing).search(max_states);
    EXPECT_NE(outcome, Outcome::kDeadlock) << verdict.table(plan);
    if (outcome == Outcome::kDeadlock) return tally;
    ++(outcome == Outcome::kFinishes ? tally.finished : tally.gave_up);

    const bool is_downgraded =
        std::any_of(verdict.edges.begin(), verdict.edges.end(), [](const EdgeReport& report) {
          return report.why.find(" SM") != std::string::npos && report.kind == EdgeKind::kFull;
        });
    if (!is_downgraded) continue;
    ++tally.downgraded;
    const Verdict off = verify(plan, {.device = device, .starvation = StarvationCheck::kOff});
    Outcome without = Outcome::kFinishes;
    for (const Queueing q : {Queueing::kAnyLaunch, Queueing::kHeadOfQueue}) {
      if (without == Outcome::kDeadlock) break;
      without = Adversary(plan, off.schedule, device, q).search(max_states);
    }
    if (without == Outcome::kFinishes) ++tally.needless;
    if (without == Outcome::kDeadlock) ++tally.rightly;
  }
  return tally;
}

void expect_sharp(const Tally& tally, int num_plans) {
  ::testing::Test::RecordProperty("finished", tally.finished);
  ::testing::Test::RecordProperty("gave_up", tally.gave_up);
  ::testing::Test::RecordProperty("downgraded", tally.downgraded);
  ::testing::Test::RecordProperty("needless", tally.needless);
  ::testing::Test::RecordProperty("rightly", tally.rightly);
  std::printf("%d finished, %d gave up, %d downgraded: %d needlessly, %d rightly\n", tally.finished,
              tally.gave_up, tally.downgraded, tally.needless, tally.rightly);
  EXPECT_GT(tally.finished, num_plans * 9 / 10);
  EXPECT_GT(tally.rightly, 0) << "the adversary found no deadlock where the check was off";
}

TEST(Grounds, NoAdversaryBlocksWhatTheProofLetsThrough) {
  expect_sharp(play(1, 2'000, 30'000), 2'000);
}

TEST(LongGrounds, NoAdversaryBlocksWhatTheProofLetsThrough) {
  expect_sharp(play(100'000, 20'000, 200'000), 20'000);
}

}  // namespace
}  // namespace tileweave::testing

#include "tileweave/plan/happens_before.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "tests/plan/chain_plans.h"
#include "tests/plan/event_graph.h"
#include "tests/plan/random_graphs.h"
#include "tileweave/plan/verify.h"

namespace tileweave::testing {
namespace {

TEST(HappensBefore, AReaderOfEverythingComesAfterEverything) {
  Plan plan({.num_streams = 2});
  for (int n = 0; n < 3; ++n) add_link(plan, {.blocks = 4});
  const HappensBefore order(
      plan, {.num_streams = 2, .nodes = {{.stream = 0}, {.stream = 1}, {.stream = 0}}});
  EXPECT_TRUE(order.ordered(0, 1));
  EXPECT_FALSE(order.done(0, 1));
  EXPECT_FALSE(order.begun(0, 1));
  EXPECT_TRUE(order.ordered(1, 2));
  EXPECT_TRUE(order.complete(0, 2));
}

/// Row by row over two streams: work w of each node reads what work w of the one before wrote.
Plan row_chain(int num_nodes, std::int64_t rows) {
  Plan plan({.num_streams = 2});
  for (int n = 0; n < num_nodes; ++n) {
    const Shape shape = {rows, 4};
    const TensorId own =
        plan.tensor({.name = "X" + std::to_string(n), .shape = shape, .tiles = {1, 4}});
    std::vector<OperandSpec> operands = {write(own, grid(shape, {1, 4}), 0)};
    if (n > 0) operands.push_back(read(own - 1, grid(shape, {1, 4}), 1));
    plan.add(node("n" + std::to_string(n), rows, operands));
  }
  return plan;
}

TEST(HappensBefore, RowByRowIsNotOrderedByNodeUntilTheNextButOneBegins) {
  const Plan plan = row_chain(4, 8);
  Schedule schedule{.num_streams = 2, .nodes = {}};
  for (int n = 0; n < 4; ++n) schedule.nodes.push_back({.stream = n % 2, .after = {}});
  const HappensBefore order(plan, schedule);
  EXPECT_FALSE(order.ordered(0, 1)) << "work 0 of node 1 does not wait for work 7 of node 0";
  EXPECT_TRUE(order.covered(0, 1));
  EXPECT_TRUE(order.complete(0, 2));
  // Node 3 begins when node 1 is complete, which waited for each work of node 0; node 2 may not
  // have begun.
  EXPECT_TRUE(order.done(0, 3));
  EXPECT_FALSE(order.done(2, 3));
  EXPECT_FALSE(order.begun(2, 3));
}

TEST(HappensBefore, WorksThatOthersMayClaimSayNothingOfBlocksThatHaveBegun) {
  // Node 2 follows node 1 on its stream, which waited for all works of node 0.
  for (const bool claims : {false, true}) {
    Plan plan = row_chain(3, 8);
    plan.nodes()[0].num_blocks = 2;
    if (claims) plan.nodes()[0].counter = {.arrivals = {8}};
    const HappensBefore order(
        plan, {.num_streams = 2, .nodes = {{.stream = 0}, {.stream = 1}, {.stream = 1}}});
    EXPECT_TRUE(order.done(0, 2));
    EXPECT_EQ(order.begun(0, 2), !claims);
    EXPECT_FALSE(order.complete(0, 2));
  }
}

TEST(HappensBefore, LaunchCompletionIsNoMoreThanTrusted) {
  const Plan plan = row_chain(2, 4);
  const HappensBefore order(
      plan, {.num_streams = 2,
             .nodes = {{.stream = 0}, {.stream = 1, .after = {{0, Release::kLaunchCompleted}}}}});
  EXPECT_FALSE(order.begun(0, 1));
  EXPECT_FALSE(order.ordered(0, 1));
  EXPECT_TRUE(order.trusted_begun(0, 1));
}

TEST(HappensBefore, SaysNothingThatEventsDoNotImply) {
  int said = 0;
  int true_in_all = 0;
  for (std::uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto pick = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    const Plan plan = random_graph(random, {.num_streams = pick(1, 3), .max_nodes = 8});
    const DeviceLimits device{.name = "tiny", .num_sms = pick(1, 6)};
    const Verdict verdict = verify(plan, {.device = device});
    ASSERT_TRUE(verdict.ok()) << sentences(verdict.faults);
    const HappensBefore order(plan, verdict.schedule);
    const EventGraph events(plan, verdict.schedule);
    const auto check = [&](const char* what, bool claimed, bool holds, NodeId i, NodeId j) {
      said += claimed ? 1 : 0;
      true_in_all += holds ? 1 : 0;
      EXPECT_LE(claimed, holds) << what << "(" << i << ", " << j << ")";
    };
    for (NodeId j = 0; j < static_cast<NodeId>(plan.nodes().size()); ++j) {
      for (NodeId i = 0; i < j; ++i) {
        check("complete", order.complete(i, j), events.complete(i, j), i, j);
        check("done", order.done(i, j), events.done(i, j), i, j);
        check("begun", order.begun(i, j), events.begun(i, j), i, j);
        check("covered", order.covered(i, j), events.covered(i, j), i, j);
        check("ordered", order.ordered(i, j), events.ordered(i, j), i, j);
      }
    }
    if (HasFailure()) return;
  }
  std::printf("%d of %d relations that hold are known\n", said, true_in_all);
  EXPECT_GT(said, true_in_all * 9 / 10);
}

TEST(HappensBefore, SerialSchedulesCompleteEverythingBefore) {
  std::mt19937 random(7);
  const Plan plan = random_graph(random, {.num_streams = 2, .max_nodes = 8});
  const HappensBefore order(plan, serial_schedule(plan));
  for (NodeId j = 0; j < static_cast<NodeId>(plan.nodes().size()); ++j) {
    for (NodeId i = 0; i < j; ++i) EXPECT_TRUE(order.complete(i, j)) << i << " " << j;
  }
}

}  // namespace
}  // namespace tileweave::testing

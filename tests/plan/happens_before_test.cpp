#include "tileweave/plan/happens_before.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <vector>

#include "tests/plan/chain_plans.h"
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

/// What must precede what, event by event: blocks begin, works pass their waits and signal, nodes
/// complete. Knows only the words of the schedule and the arrivals of tiles.
class EventGraph {
 public:
  EventGraph(const Plan& plan, const Schedule& schedule) : plan_(plan), works_(plan) {
    for (std::size_t n = 0; n < plan.nodes().size(); ++n) {
      const NodeSpec& spec = plan.nodes()[n];
      works_.add(static_cast<NodeId>(n));
      first_.push_back(num_events_);
      num_events_ += blocks_of(spec) + 2 * spec.num_works + 2;
    }
    before_.resize(static_cast<std::size_t>(num_events_),
                   std::vector<bool>(static_cast<std::size_t>(num_events_), false));
    for (std::size_t n = 0; n < plan.nodes().size(); ++n) {
      add(static_cast<NodeId>(n), schedule.nodes[n], schedule);
    }
    // Events are not numbered in their order: close transitively.
    for (std::size_t k = 0; k < before_.size(); ++k) {
      for (auto& row : before_) {
        if (!row[k]) continue;
        for (std::size_t j = 0; j < row.size(); ++j) row[j] = row[j] || before_[k][j];
      }
    }
  }

  std::int64_t begin(NodeId n, std::int64_t block) const { return at(n) + block; }
  std::int64_t pass(NodeId n, std::int64_t work) const { return at(n) + blocks(n) + work; }
  std::int64_t signal(NodeId n, std::int64_t work) const {
    return at(n) + blocks(n) + works(n) + work;
  }
  std::int64_t end(NodeId n) const { return at(n) + blocks(n) + 2 * works(n); }
  /// All that its blocks have to wait for has come.
  std::int64_t release(NodeId n) const { return end(n) + 1; }
  bool precedes(std::int64_t a, std::int64_t b) const {
    return before_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  }

  bool complete(NodeId i, NodeId j) const {
    return each(blocks(j), [&](std::int64_t b) { return precedes(end(i), begin(j, b)); });
  }
  bool done(NodeId i, NodeId j) const {
    return each(works(i), [&](std::int64_t x) {
      return each(blocks(j), [&](std::int64_t b) { return precedes(signal(i, x), begin(j, b)); });
    });
  }
  bool begun(NodeId i, NodeId j) const {
    return each(blocks(i), [&](std::int64_t a) {
      return each(blocks(j), [&](std::int64_t b) { return precedes(begin(i, a), begin(j, b)); });
    });
  }
  bool covered(NodeId i, NodeId j) const {
    return each(works(i), [&](std::int64_t x) {
      return !each(works(j), [&](std::int64_t w) { return !precedes(signal(i, x), pass(j, w)); });
    });
  }
  bool ordered(NodeId i, NodeId j) const {
    return each(works(i), [&](std::int64_t x) {
      return each(works(j), [&](std::int64_t w) { return precedes(signal(i, x), pass(j, w)); });
    });
  }

 private:
  template <class Holds>
  static bool each(std::int64_t count, const Holds& holds) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (!holds(i)) return false;
    }
    return true;
  }
  std::int64_t at(NodeId n) const { return first_[static_cast<std::size_t>(n)]; }
  const NodeSpec& spec(NodeId n) const { return plan_.nodes()[static_cast<std::size_t>(n)]; }
  std::int64_t blocks(NodeId n) const { return blocks_of(spec(n)); }
  std::int64_t works(NodeId n) const { return spec(n).num_works; }
  void edge(std::int64_t a, std::int64_t b) {
    before_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = true;
  }

  void add(NodeId n, const ScheduledNode& node, const Schedule& schedule) {
    for (std::int64_t b = 0; b < blocks(n); ++b) {
      std::int64_t last = begin(n, b);
      for (std::int64_t w = b; w < works(n); w += blocks(n)) {
        edge(last, pass(n, w));
        edge(pass(n, w), signal(n, w));
        last = signal(n, w);
      }
      edge(last, end(n));
    }
    for (std::int64_t w = 0; w < works(n); ++w) {
      for (const TileRef& tile : works_.waits({n, w})) {
        for (const WorkRef& arrival : works_.arrivals(tile)) {
          if (arrival.node < n) edge(signal(arrival.node, arrival.work), pass(n, w));
        }
      }
    }
    NodeId stream_pred = -1;
    for (NodeId k = 0; k < n; ++k) {
      if (spec(k).rank == spec(n).rank &&
          schedule.nodes[static_cast<std::size_t>(k)].stream == node.stream) {
        stream_pred = k;
      }
    }
    for (std::int64_t b = 0; b < blocks(n); ++b) edge(release(n), begin(n, b));
    for (const Dependency& dependency : node.after) {
      const NodeId on = dependency.on;
      if (dependency.release == Release::kCompleted) edge(end(on), release(n));
      if (dependency.release == Release::kFirstBegun) edge(release(on), release(n));
      const bool all_begun =
          dependency.release == Release::kAllBegun || dependency.release == Release::kProgrammatic;
      for (std::int64_t a = 0; all_begun && a < blocks(on); ++a) edge(begin(on, a), release(n));
      if (dependency.release != Release::kProgrammatic) continue;
      if (stream_pred == on) stream_pred = -1;
      edge(end(on), end(n));
      for (std::int64_t w = 0; w < works(n); ++w) edge(end(on), pass(n, w));
    }
    if (stream_pred >= 0) edge(end(stream_pred), release(n));
  }

  const Plan& plan_;
  WorkGraph works_;
  std::vector<std::int64_t> first_;
  std::int64_t num_events_ = 0;
  std::vector<std::vector<bool>> before_;
};

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

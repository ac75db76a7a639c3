#include "tileweave/trace/exposed_time.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/trace/example_traces.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

TileRecord record(std::uint32_t node, std::uint32_t sm, std::uint64_t begin, std::uint64_t end) {
  return {.node = node,
          .rank = 0,
          .work = 0,
          .sm = sm,
          .begin_ns = begin,
          .wait_ns = 0,
          .ready_ns = 0,
          .signal_ns = 0,
          .end_ns = end};
}

Trace three_nodes(std::vector<TileRecord> records) {
  Trace trace;
  trace.title = "three nodes";
  trace.clock = "modelled";
  trace.num_sms = 3;
  for (std::uint32_t i = 0; i < 3; ++i) {
    trace.nodes.push_back({.name = "node " + std::to_string(i),
                           .position = i,
                           .rank = 0,
                           .op = i == 1 ? "norm" : "gemm"});
  }
  trace.records = std::move(records);
  return trace;
}

TEST(ExposedTime, OfFigureOneIsTheHandCount) {
  const ExposedTime serial = exposed_time(testing::figure1_serial());
  EXPECT_EQ(serial.makespan, 4u);
  EXPECT_EQ(serial.ranks[0].nodes[0].exposed, 2u);
  EXPECT_EQ(serial.ranks[0].nodes[1].exposed, 2u);
  EXPECT_EQ(serial.sm_time.computing, 8u);
  EXPECT_EQ(serial.sm_time.idle, 4u);

  const ExposedTime overlap = exposed_time(testing::figure1_overlap());
  EXPECT_EQ(overlap.makespan, 3u);
  EXPECT_EQ(overlap.ranks[0].nodes[0].exposed, 2u);
  EXPECT_EQ(overlap.ranks[0].nodes[1].exposed, 1u);
  EXPECT_EQ(overlap.sm_time.computing, 8u);
  EXPECT_EQ(overlap.sm_time.idle, 1u);
}

TEST(ExposedTime, GoesToTheEarliestFinishingNode) {
  // Node 1 lies within node 2 and finishes first of all; node 0 finishes last.
  const ExposedTime times =
      exposed_time(three_nodes({record(0, 0, 0, 20), record(1, 1, 2, 5), record(2, 2, 1, 12)}));
  EXPECT_EQ(times.ranks[0].nodes[1].exposed, 5u);
  EXPECT_EQ(times.ranks[0].nodes[2].exposed, 7u);
  EXPECT_EQ(times.ranks[0].nodes[0].exposed, 8u);
}

TEST(ExposedTime, GoesToTheFirstByPositionWhereNodesFinishTogether) {
  const ExposedTime times =
      exposed_time(three_nodes({record(2, 0, 0, 9), record(0, 1, 3, 9), record(1, 2, 3, 9)}));
  EXPECT_EQ(times.ranks[0].nodes[0].exposed, 9u);
  EXPECT_EQ(times.ranks[0].nodes[1].exposed, 0u);
  EXPECT_EQ(times.ranks[0].nodes[2].exposed, 0u);
}

TEST(ExposedTime, CountsAGapForTheNodeThatFinishesNext) {
  const ExposedTime times = exposed_time(three_nodes({record(0, 0, 0, 4), record(1, 0, 10, 11)}));
  EXPECT_EQ(times.ranks[0].nodes[1].exposed, 7u);
  EXPECT_EQ(times.ranks[0].nodes[2].exposed, 0u) << "never ran";
  EXPECT_EQ(times.ranks[0].nodes[2].tiles, 0u);
}

TEST(ExposedTime, AddsUpToTheMakespanOfEveryRank) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    Trace trace;
    trace.title = "random";
    trace.clock = "modelled";
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      for (std::uint32_t position = 0; position < 5; ++position) {
        trace.nodes.push_back({.name = "n",
                               .position = position,
                               .rank = rank,
                               .op = "op" + std::to_string(position % 2)});
      }
    }
    const std::uint64_t base = random() >> 2;
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t begin = base + random() % 1000;
      const std::uint64_t wait = begin + random() % 50;
      const std::uint64_t ready = wait + random() % 50;
      trace.records.push_back({.node = static_cast<std::uint32_t>(random() % 5),
                               .rank = static_cast<std::uint32_t>(random() % 3),
                               .work = 0,
                               .sm = static_cast<std::uint32_t>(random() % 4),
                               .begin_ns = begin,
                               .wait_ns = wait,
                               .ready_ns = ready,
                               .signal_ns = 0,
                               .end_ns = ready + random() % 100});
    }
    const ExposedTime times = exposed_time(trace);
    std::uint64_t longest = 0;
    for (const RankTime& rank : times.ranks) {
      std::uint64_t of_nodes = 0;
      std::uint64_t of_operators = 0;
      for (const NodeTime& node : rank.nodes) of_nodes += node.exposed;
      for (const OperatorTime& op : rank.operators) of_operators += op.exposed;
      EXPECT_EQ(of_nodes, rank.makespan);
      EXPECT_EQ(of_operators, rank.makespan);
      longest = std::max(longest, rank.makespan);
    }
    EXPECT_EQ(longest, times.makespan);
    EXPECT_EQ(times.makespan, run_span(trace).duration());
    EXPECT_EQ(times.sm_time.total(), times.sm_time.num_sms * times.makespan);
  }
}

TEST(ExposedTime, TellsComputingFromWaitingOnAnSm) {
  Trace trace = three_nodes({record(0, 0, 0, 10), record(1, 0, 4, 14)});
  trace.records[1].wait_ns = 5;  // from 5 to 12: covered by node 0 until 10
  trace.records[1].ready_ns = 12;
  const ExposedTime times = exposed_time(trace);
  EXPECT_EQ(times.sm_time.computing, 12u);
  EXPECT_EQ(times.sm_time.waiting, 2u);
  EXPECT_EQ(times.sm_time.idle, 2u * 14u);
  EXPECT_EQ(times.ranks[0].nodes[1].waiting, 7u);
  EXPECT_EQ(times.ranks[0].nodes[1].busy, 3u);
}

TEST(ExposedTime, CountsAnSmThatRanksShareOnce) {
  Trace trace = testing::figure1_overlap();
  testing::append_rank(trace, testing::figure1_overlap());
  for (std::size_t i = 8; i < 16; ++i) trace.records[i].rank = 1;
  for (std::size_t i = 2; i < 4; ++i) trace.nodes[i].rank = 1;
  EXPECT_EQ(exposed_time(trace).sm_time.num_sms, 6u);
  EXPECT_EQ(exposed_time(trace).sm_time.computing, 16u);
  trace.sm_scope = SmScope::kShared;
  EXPECT_EQ(exposed_time(trace).sm_time.num_sms, 3u);
  EXPECT_EQ(exposed_time(trace).sm_time.computing, 8u);
}

TEST(ExposedTime, OfNothingIsNothing) {
  Trace trace;
  trace.clock = "measured";
  EXPECT_EQ(exposed_time(trace).makespan, 0u);
  EXPECT_TRUE(exposed_time(trace).ranks.empty());
  EXPECT_NE(exposed_time_table(trace).find("measured"), std::string::npos);
}

TEST(ExposedTimeTable, SaysModelledAndHowMuchWasLost) {
  Trace trace = testing::figure1_overlap();
  trace.dropped = {2, 0, 3};
  trace.nodes[0].name = "two\nlines";
  const std::string table = exposed_time_table(trace);
  EXPECT_NE(table.find("Figure 1, overlap (modelled): makespan 3 ticks"), std::string::npos);
  EXPECT_NE(table.find("INCOMPLETE: 5 records"), std::string::npos);
  EXPECT_EQ(table.find("two\nlines"), std::string::npos) << "a name broke its row";
}

}  // namespace
}  // namespace tileweave

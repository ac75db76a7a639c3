#include "tileweave/trace/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "tests/trace/example_traces.h"

namespace tileweave {
namespace {

Trace random_trace(unsigned seed) {
  std::mt19937 random(seed);
  Trace trace;
  trace.title = "random";
  trace.clock = "modelled";
  trace.num_sms = 1 + static_cast<int>(random() % 4);
  trace.nodes = {{.name = "a", .position = 0, .rank = 0, .op = "a"},
                 {.name = "b", .position = 0, .rank = 3, .op = "a"}};
  const auto count = random() % 60;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t begin = random() % 40;
    trace.records.push_back(
        {.node = 0,
         .rank = random() % 2 == 0 ? 0u : 3u,
         .work = i,
         .sm = static_cast<std::uint32_t>(random()) % static_cast<std::uint32_t>(trace.num_sms),
         .begin_ns = begin,
         .wait_ns = 0,
         .ready_ns = 0,
         .signal_ns = 0,
         .end_ns = begin + random() % 12});
  }
  return trace;
}

TEST(Lanes, NeverOverlapAndHoldEveryRecordOnce) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Trace trace = random_trace(seed);
    const LaneLayout layout = layout_lanes(trace);
    std::set<std::uint32_t> seen;
    for (std::size_t l = 0; l < layout.lanes.size(); ++l) {
      const TraceLane& lane = layout.lanes[l];
      std::uint64_t reached = 0;
      for (const std::uint32_t i : lane.records) {
        EXPECT_TRUE(seen.insert(i).second);
        EXPECT_EQ(layout.lane_of_record[i], l);
        EXPECT_EQ(trace.records[i].sm, lane.sm);
        EXPECT_EQ(trace.records[i].rank, lane.rank);
        EXPECT_GE(trace.records[i].begin_ns, reached);
        reached = trace.records[i].end_ns;
      }
    }
    EXPECT_EQ(seen.size(), trace.records.size());
  }
}

TEST(Lanes, AreAsManyAsBlocksWereResidentAtOnce) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Trace trace = random_trace(seed);
    std::size_t wanted = 0;
    for (const std::uint32_t rank : {0u, 3u}) {
      for (int sm = 0; sm < trace.num_sms; ++sm) {
        std::size_t most = 1;
        for (std::uint64_t t = 0; t < 60; ++t) {
          std::size_t resident = 0;
          for (const TileRecord& r : trace.records) {
            const bool is_here = r.rank == rank && r.sm == static_cast<std::uint32_t>(sm);
            if (is_here && r.begin_ns <= t && t < r.end_ns) ++resident;
          }
          most = std::max(most, resident);
        }
        wanted += most;
      }
    }
    // A record of no length needs room too while its SM is full at that instant.
    const bool has_empty = std::any_of(trace.records.begin(), trace.records.end(),
                                       [](const TileRecord& r) { return r.begin_ns == r.end_ns; });
    const std::size_t lanes = layout_lanes(trace).lanes.size();
    if (has_empty) {
      EXPECT_GE(lanes, wanted);
    } else {
      EXPECT_EQ(lanes, wanted);
    }
  }
}

TEST(Lanes, DoNotDependOnTheOrderOfRecords) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Trace trace = random_trace(seed);
    const auto places = [](const Trace& t) {
      const LaneLayout layout = layout_lanes(t);
      std::vector<std::pair<std::uint32_t, std::uint32_t>> place_of_work;
      for (std::size_t i = 0; i < t.records.size(); ++i) {
        place_of_work.emplace_back(t.records[i].work, layout.lane_of_record[i]);
      }
      std::sort(place_of_work.begin(), place_of_work.end());
      return place_of_work;
    };
    const auto before = places(trace);
    std::shuffle(trace.records.begin(), trace.records.end(), std::mt19937(seed));
    EXPECT_EQ(places(trace), before);
  }
}

TEST(Lanes, ShowIdleSmsToo) {
  Trace trace = testing::figure1_overlap();
  trace.num_sms = 5;
  EXPECT_EQ(layout_lanes(trace).lanes.size(), 5u);
  EXPECT_TRUE(layout_lanes(trace).lanes[4].records.empty());
}

}  // namespace
}  // namespace tileweave

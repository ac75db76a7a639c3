#include "tileweave/trace/perfetto.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/trace/example_traces.h"

namespace tileweave {
namespace {

using nlohmann::json;

std::vector<json> events_of(const json& file, const std::string& phase) {
  std::vector<json> events;
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] == phase) events.push_back(event);
  }
  return events;
}

std::int64_t ns(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1e3);
}

bool encloses(const json& slice, const json& event) {
  const std::int64_t begin = ns(slice["ts"]);
  const std::int64_t at = ns(event["ts"]);
  return slice["pid"] == event["pid"] && slice["tid"] == event["tid"] && begin <= at &&
         at < begin + ns(slice["dur"]);
}

Trace two_ranks() {
  Trace trace = testing::schedule("two ranks", testing::decode_step(1), 4, 2, 0, 1'000'000'007, 3);
  testing::append_rank(trace,
                       testing::schedule("", testing::decode_step(1), 4, 2, 5, 1'000'000'100, 4));
  return trace;
}

TEST(Perfetto, FlowsStartAndEndInExistingSlices) {
  Trace large = two_ranks();
  large.arrows.resize(400);
  Trace signals_last = testing::figure1_overlap();
  signals_last.time_unit = "ns";
  for (const Trace& trace :
       {testing::figure1_overlap(), testing::figure1_serial(), signals_last, large}) {
    const json file = json::parse(perfetto_json(trace));
    std::vector<json> blocks;
    for (const json& slice : events_of(file, "X")) {
      if (slice["cat"] == "block") blocks.push_back(slice);
    }
    std::map<std::int64_t, const json*> block_of_record;
    for (const json& block : blocks) block_of_record[block["args"]["record"]] = &block;
    const std::vector<json> starts = events_of(file, "s");
    const std::vector<json> ends = events_of(file, "f");
    ASSERT_EQ(starts.size(), trace.arrows.size());
    ASSERT_EQ(ends.size(), trace.arrows.size());
    for (std::size_t i = 0; i < trace.arrows.size(); ++i) {
      EXPECT_TRUE(encloses(*block_of_record[trace.arrows[i].from_record], starts[i])) << starts[i];
      EXPECT_TRUE(encloses(*block_of_record[trace.arrows[i].to_record], ends[i])) << ends[i];
      EXPECT_EQ(starts[i]["id"], ends[i]["id"]);
      EXPECT_EQ(starts[i]["name"], ends[i]["name"]);
      EXPECT_EQ(starts[i]["cat"], ends[i]["cat"]);
      EXPECT_EQ(ends[i]["bp"], "e");
    }
  }
}

TEST(Perfetto, SlicesOfATrackNestAndBlocksNeverOverlap) {
  const Trace trace = two_ranks();
  const json file = json::parse(perfetto_json(trace));
  std::map<std::pair<int, int>, std::int64_t> reached;
  std::map<std::pair<int, int>, json> open;
  std::map<std::string, int> count;
  for (const json& slice : events_of(file, "X")) {
    const std::pair<int, int> track{slice["pid"], slice["tid"]};
    const std::int64_t begin = ns(slice["ts"]);
    const std::int64_t end = begin + ns(slice["dur"]);
    if (slice["cat"] == "block") {
      ++count["block"];
      EXPECT_GE(begin, reached[track]);
      reached[track] = end;
      open[track] = slice;
    } else {
      ++count[slice["name"]];
      EXPECT_TRUE(encloses(open[track], slice));
      EXPECT_LE(end, reached[track]);
    }
  }
  EXPECT_EQ(count["block"], static_cast<int>(trace.records.size()));
  EXPECT_EQ(count["compute"], static_cast<int>(trace.records.size()));
  EXPECT_GT(count["wait"], 0);
  EXPECT_GT(count["prologue"], 0);
}

TEST(Perfetto, HasOneProcessPerRankAndOneTrackPerLane) {
  const json file = json::parse(perfetto_json(two_ranks()));
  std::set<int> processes;
  std::set<int> threads;
  for (const json& event : events_of(file, "M")) {
    if (event["name"] == "process_name") {
      EXPECT_TRUE(processes.insert(event["pid"].get<int>()).second);
    }
    if (event["name"] == "thread_name") {
      EXPECT_TRUE(threads.insert(event["tid"].get<int>()).second);
    }
  }
  EXPECT_EQ(processes.size(), 2u);
  EXPECT_EQ(threads.size(), 16u) << "2 ranks x 4 SMs x 2 lanes";
  for (const int process : processes) EXPECT_EQ(threads.count(process), 0u);
}

TEST(Perfetto, SurvivesAnyName) {
  Trace trace = testing::figure1_overlap();
  trace.title = "title \"\\ \n\xFF";
  trace.nodes[0].name = "na\"me</script>\x01\xC3\xA9";
  trace.nodes[0].op = "\xED\xA0\x80";
  trace.tensors[0] = "\\u0000\"";
  const json file = json::parse(perfetto_json(trace));
  const json first = events_of(file, "X").at(0);
  EXPECT_EQ(first["args"]["node"], "na\"me</script>\x01\xC3\xA9");
  EXPECT_EQ(events_of(file, "s").at(0)["name"], "\\u0000\"");
}

TEST(Perfetto, KeepsNanosecondsOfHugeTimes) {
  Trace trace;
  trace.title = "late";
  trace.clock = "measured";
  trace.nodes = {{.name = "n", .position = 0, .rank = 0, .op = "op"}};
  const std::uint64_t start = 0xFFFF'FFFF'FFFF'0000u;  // doubles are 2048 apart here
  trace.records = {{.node = 0,
                    .rank = 0,
                    .work = 0,
                    .sm = 0,
                    .begin_ns = start + 1,
                    .wait_ns = 0,
                    .ready_ns = 0,
                    .signal_ns = 0,
                    .end_ns = start + 2},
                   {.node = 0,
                    .rank = 0,
                    .work = 1,
                    .sm = 0,
                    .begin_ns = start + 4,
                    .wait_ns = 0,
                    .ready_ns = 0,
                    .signal_ns = 0,
                    .end_ns = start + 1237}};
  const std::string text = perfetto_json(trace);
  EXPECT_NE(text.find("\"ts\":0.003,\"dur\":1.233"), std::string::npos) << text;
  EXPECT_NE(text.find("\"run_start\":\"" + std::to_string(start + 1) + "\""), std::string::npos);
}

TEST(Perfetto, SaysModelledAndHowMuchWasLost) {
  Trace trace = testing::figure1_overlap();
  trace.dropped = {4, 1};
  const json file = json::parse(perfetto_json(trace, {.max_arrows = 3}));
  const std::string process = events_of(file, "M").at(0)["args"]["name"];
  EXPECT_NE(process.find("modelled"), std::string::npos);
  EXPECT_NE(process.find("5 records lost"), std::string::npos);
  EXPECT_NE(process.find("5 arrows left out"), std::string::npos);
  EXPECT_EQ(events_of(file, "s").size(), 3u);
  EXPECT_EQ(file["otherData"]["clock"], "modelled");
  EXPECT_EQ(file["otherData"]["dropped_records"], "5");
  trace.clock = "measured";
  EXPECT_EQ(perfetto_json(trace).find("modelled"), std::string::npos);
}

TEST(Perfetto, OfNoRecordAndOfOneRecordParses) {
  Trace trace;
  trace.clock = "measured";
  EXPECT_TRUE(json::parse(perfetto_json(trace))["traceEvents"].empty());
  trace.nodes = {{.name = "n", .position = 9, .rank = 2, .op = "op"}};
  trace.records = {{.node = 9,
                    .rank = 2,
                    .work = 0,
                    .sm = 1,
                    .begin_ns = 5,
                    .wait_ns = 0,
                    .ready_ns = 0,
                    .signal_ns = 5,
                    .end_ns = 5}};
  const json file = json::parse(perfetto_json(trace));
  ASSERT_EQ(events_of(file, "X").size(), 1u) << "a block of no length has no parts";
  EXPECT_EQ(events_of(file, "X")[0]["dur"], 0);
}

}  // namespace
}  // namespace tileweave

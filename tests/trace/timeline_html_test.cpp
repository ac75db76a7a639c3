#include "tileweave/trace/timeline_html.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/trace/example_traces.h"

namespace tileweave {
namespace {

using nlohmann::json;

json data_of(const std::string& page) {
  const std::string open = "id=\"trace-data\">";
  const std::size_t begin = page.find(open) + open.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(TimelineHtml, RefersToNothingOutside) {
  const std::string page = timeline_html(testing::figure1_overlap());
  for (const char* part : {"http:", "https:", "//cdn", "src=", "href=", "@import", "url(", "fetch(",
                           "XMLHttpRequest", "import(", "<link", "<iframe", "WebSocket"}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(TimelineHtml, MakesHostileNamesHarmless) {
  Trace trace = testing::figure1_overlap();
  const std::string plain = timeline_html(trace);
  const std::string hostile = "</script><b>x</b><script>alert(1)</script><!--";
  trace.title = trace.nodes[0].name = trace.nodes[0].op = trace.tensors[0] = hostile;
  trace.nodes[1].op = "\"><img onerror='alert(1)'>";
  trace.time_unit = "<i>";
  const std::string page = timeline_html(trace);
  for (const char* tag : {"<script", "</script", "<!--", "<img", "<i>"}) {
    EXPECT_EQ(count_of(page, tag), count_of(plain, tag)) << tag;
  }
  EXPECT_EQ(page.find("<b>x"), std::string::npos);
  EXPECT_EQ(data_of(page)["nodes"][0]["name"], hostile);
  EXPECT_EQ(data_of(page)["tensors"][0], hostile);
}

TEST(TimelineHtml, CarriesEveryRecordRelativeToTheRunStart) {
  Trace trace =
      testing::schedule("late", testing::decode_step(1), 5, 2, 0, 0xFFFF'FFFF'0000'0001u, 9);
  const json data = data_of(timeline_html(trace));
  const std::uint64_t start = run_span(trace).begin;
  EXPECT_EQ(data["span"], run_span(trace).duration());
  ASSERT_EQ(data["records"]["begin"].size(), trace.records.size());
  for (std::size_t i = 0; i < trace.records.size(); ++i) {
    const TileRecord& record = trace.records[i];
    EXPECT_EQ(data["records"]["begin"][i], record.begin_ns - start);
    EXPECT_EQ(data["records"]["end"][i], record.end_ns - start);
    EXPECT_EQ(data["records"]["signal"][i], record.signal_ns - start);
    EXPECT_EQ(data["records"]["work"][i], record.work);
    const json& lane = data["lanes"][data["records"]["lane"][i].get<std::size_t>()];
    EXPECT_EQ(lane["sm"], record.sm);
  }
  EXPECT_EQ(data["arrows"].size(), 4 * trace.arrows.size());
}

TEST(TimelineHtml, SaysModelledOnlyWhenItIs) {
  Trace trace = testing::figure1_overlap();
  EXPECT_NE(timeline_html(trace).find("class=\"badge modelled\">modelled<"), std::string::npos);
  trace.clock = "measured";
  EXPECT_EQ(timeline_html(trace).find(">modelled<"), std::string::npos);
}

TEST(TimelineHtml, SaysWhatIsMissing) {
  Trace trace = testing::figure1_overlap();
  EXPECT_EQ(timeline_html(trace).find("Incomplete"), std::string::npos);
  trace.dropped = {1, 2};
  const std::string page = timeline_html(trace, {.max_arrows = 5});
  EXPECT_NE(page.find("3 records were lost"), std::string::npos);
  EXPECT_NE(page.find("3 tile dependencies are not in this page"), std::string::npos);
  EXPECT_EQ(data_of(page)["arrows"].size(), 4u * 5u);
}

TEST(TimelineHtml, KnowsAWaitThatWasGivenUp) {
  Trace trace = testing::figure1_overlap();
  trace.records[7].ready_ns = 0;
  const json data = data_of(timeline_html(trace));
  EXPECT_EQ(data["gave_up"], json::array({7}));
  EXPECT_EQ(data["records"]["ready"][7], data["records"]["end"][7]);
}

TEST(TimelineHtml, OfNoRecordAndOfOneRecordIsAPage) {
  Trace trace;
  trace.clock = "measured";
  EXPECT_NE(timeline_html(trace).find("No blocks were recorded"), std::string::npos);
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
  EXPECT_EQ(data_of(timeline_html(trace))["span"], 0);
}

TEST(TimelineHtml, ShowsTheExposedTimesOfTheReport) {
  const std::string page = timeline_html(testing::figure1_overlap());
  EXPECT_TRUE(std::regex_search(page, std::regex("GEMM X</td><td>4</td><td>2 ticks</td>")));
  EXPECT_TRUE(std::regex_search(page, std::regex("GEMM Y</td><td>4</td><td>1 tick</td>")));
}

}  // namespace
}  // namespace tileweave

// Counts from CSV and routes from JSONL: what is written is read back, what is wrong is named by
// line.
#include <gtest/gtest.h>

#include <string>

#include "tileweave/core/error.h"
#include "tileweave/moe/workload/configurations.h"
#include "tileweave/moe/workload/counts_csv.h"
#include "tileweave/moe/workload/trace_jsonl.h"

namespace tileweave {
namespace {

template <class Act>
std::string sentence(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string csv_sentence(const std::string& text, const CountsCsvOptions& options = {}) {
  return sentence([&] { parse_counts_csv(text, "f.csv", options); });
}

std::string trace_sentence(const std::string& text, const TraceOptions& options = {}) {
  return sentence([&] { parse_trace(text, "f.jsonl", options); });
}

TEST(CountsCsv, IsReadWithSpacesCarriageReturnsAndMissingPairs) {
  const CountMatrix counts =
      parse_counts_csv("rank,expert,count\r\n1,0,5\r\n\r\n 0 , 2 ,7", "f.csv");
  EXPECT_EQ(counts.num_ranks, 2);
  EXPECT_EQ(counts.num_experts, 3);
  EXPECT_EQ(counts.counts, (std::vector<std::int32_t>{0, 0, 7, 5, 0, 0}));
  const CountMatrix larger =
      parse_counts_csv("rank,expert,count\n0,0,1\n", "f.csv", {.num_ranks = 2, .num_experts = 2});
  EXPECT_EQ(larger.counts, (std::vector<std::int32_t>{1, 0, 0, 0}));
}

TEST(CountsCsv, IsReadBackAsWritten) {
  const CountMatrix counts = counts_of(evaluation_configurations()[2], 1);
  EXPECT_TRUE(parse_counts_csv(to_counts_csv(counts), "f.csv") == counts);
  CountMatrix empty = empty_counts(3, 4);
  EXPECT_TRUE(parse_counts_csv(to_counts_csv(empty), "f.csv") == empty);
}

TEST(CountsCsv, NamesTheLineThatIsWrong) {
  const std::string header = "rank,expert,count\n", who = "read f.csv: ";
  EXPECT_EQ(csv_sentence(""), who + "the header rank,expert,count, got an empty file");
  EXPECT_EQ(csv_sentence("0,0,1\n"),
            who + "line 1 to have the header rank,expert,count, got \"0,0,1\"");
  EXPECT_EQ(csv_sentence(header), who + "at least one line of counts, got none");
  EXPECT_EQ(csv_sentence(header + "0,0,1\n0,1\n"),
            who + "line 3 to have three fields, got \"0,1\"");
  EXPECT_EQ(csv_sentence(header + "0,1,2,3\n"),
            who + "line 2 to have three fields, got \"0,1,2,3\"");
  EXPECT_EQ(csv_sentence(header + "0,0,-4\n"),
            who + "line 2 to have a count of 0 to 2147483647, got \"-4\"");
  EXPECT_EQ(csv_sentence(header + "0,0,1.5\n"),
            who + "line 2 to have a count of 0 to 2147483647, got \"1.5\"");
  EXPECT_EQ(csv_sentence(header + "0,x,1\n"),
            who + "line 2 to have an expert of 0 to 1048575, got \"x\"");
  EXPECT_EQ(csv_sentence(header + "99999999999,0,1\n"),
            who + "line 2 to have a rank of 0 to 65535, got \"99999999999\"");
  EXPECT_EQ(csv_sentence(header + "0,0,1\n1,0,1\n0,0,2\n"),
            who +
                "line 4 to have a rank and expert that no line before has, got rank 0, expert 0 "
                "again");
  EXPECT_EQ(csv_sentence(header + "0,9,1\n", {.num_experts = 8}),
            who + "line 2 to have an expert below 8, got 9");
  EXPECT_EQ(csv_sentence(header + "65535,1048575,1\n"),
            "make a count matrix: 1 to 2^26 pairs of rank and expert, got 65536 ranks and 1048576 "
            "experts");
}

TEST(Trace, LinesOfALayerAndRankFollowOneAnother) {
  const auto routes = parse_trace(R"({"layer": 3, "rank": 1, "topk_ids": [[2, 0]], "step": 1}
{"layer": 5, "rank": 0, "topk_ids": [[1, 4]]}

{"rank": 1, "topk_ids": [[0, -1], [3, 1]], "layer": 3}
)",
                                  "f.jsonl");
  ASSERT_EQ(routes.size(), 2U);
  EXPECT_TRUE(routes.at(3) == (Route{5, 2, {{}, {2, 0, 0, -1, 3, 1}}}));
  EXPECT_TRUE(routes.at(5) == (Route{5, 2, {{1, 4}, {}}}));
}

TEST(Trace, IsReadBackAsWritten) {
  const Route route = route_of(evaluation_configurations()[2], 1);
  const auto routes = parse_trace(to_trace(7, route), "f.jsonl", {.num_experts = 128});
  ASSERT_EQ(routes.size(), 1U);
  EXPECT_TRUE(routes.at(7) == route);
  EXPECT_EQ(to_trace_line(0, 2, 2, {}), "{\"layer\": 0, \"rank\": 2, \"topk_ids\": []}\n");
}

TEST(Trace, NamesTheLineThatIsWrong) {
  const std::string good = "{\"layer\": 0, \"rank\": 0, \"topk_ids\": [[0, 1]]}\n";
  const auto second = [&](const std::string& line, const TraceOptions& options = {}) {
    return trace_sentence(good + line, options);
  };
  const auto ids = [](const std::string& text) {
    return "{\"layer\": 0, \"rank\": 0, \"topk_ids\": " + text + "}";
  };
  const std::string who = "read f.jsonl: line 2 to ";
  EXPECT_EQ(second("{\"layer\": 0,"), who + "be a JSON object, got \"{\\\"layer\\\": 0,\"");
  EXPECT_EQ(second("[1]"), who + "be a JSON object, got \"[1]\"");
  EXPECT_EQ(second("{\"layer\": 0}"), who + "have \"rank\", an integer of 0 to 65535, got none");
  EXPECT_EQ(second("{\"layer\": -1}"),
            who + "have \"layer\", an integer of 0 to 1048575, got \"-1\"");
  EXPECT_EQ(second("{\"layer\": 1e3}"),
            who + "have \"layer\", an integer of 0 to 1048575, got \"1000.0\"");
  EXPECT_EQ(second("{\"layer\": 18446744073709551615}"),
            who + "have \"layer\", an integer of 0 to 1048575, got \"18446744073709551615\"");
  EXPECT_EQ(second("{\"layer\": 0, \"rank\": 0}"),
            who + "have \"topk_ids\", an array of arrays of expert ids, got none");
  EXPECT_EQ(second(ids("7")),
            who + "have \"topk_ids\", an array of arrays of expert ids, got number");
  EXPECT_EQ(second(ids("[7]")), who + "have an array of expert ids for each token, got \"7\"");
  EXPECT_EQ(second(ids("[[]]")), who + "have an array of expert ids for each token, got \"[]\"");
  EXPECT_EQ(second(ids("[[1]]")), who + "have 2 expert ids for each token, as before, got 1");
  EXPECT_EQ(second(ids("[[1, -2]]")), who + "have expert ids of -1 to 1048575, got \"-2\"");
  EXPECT_EQ(second(ids("[[1, null]]")), who + "have expert ids of -1 to 1048575, got \"null\"");
  EXPECT_EQ(second(ids("[[1, 8]]"), {.num_experts = 8}),
            who + "have expert ids of -1 to 7, got \"8\"");
  EXPECT_EQ(second(ids("[[3, 3]]")),
            who + "have different experts for each token, got expert 3 twice");
  EXPECT_EQ(trace_sentence(good, {.num_experts = 1}),
            "read f.jsonl: line 1 to have at most 1 expert ids for a token, the number of experts, "
            "got 2");
  EXPECT_EQ(trace_sentence("\n"), "read f.jsonl: at least one token, got none");
}

}  // namespace
}  // namespace tileweave

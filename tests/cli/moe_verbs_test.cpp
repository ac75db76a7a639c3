// `tileweave moe plan` and `tileweave moe workload` as a user starts them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "tests/cli/command.h"

namespace tileweave::cli {
namespace {

class MoeVerbs : public testing::Test {
 protected:
  MoeVerbs() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("moe_verbs_" + std::string(test->name()) + "_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~MoeVerbs() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::filesystem::path folder_;
};

nlohmann::json json_of(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const CommandResult result = run(arguments);
  EXPECT_EQ(result.status, kSuccess) << result.err;
  return nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
}

void expect_fails(const std::vector<std::string>& arguments, int status, const std::string& with) {
  const CommandResult result = run(arguments);
  EXPECT_EQ(result.status, status);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(with), std::string::npos) << result.err;
}

TEST_F(MoeVerbs, PlanShowsEveryRankBeforeAndAfter) {
  const CommandResult table = run({"moe", "plan"});
  EXPECT_EQ(table.status, kSuccess) << table.err;
  for (const char* part : {"zipf 0.9, seed 1", "rows before", "fair share", "eta", "(modelled)"}) {
    EXPECT_NE(table.out.find(part), std::string::npos) << part << " in\n" << table.out;
  }
  const auto json = json_of({"moe", "plan", "--gate", "off"});
  EXPECT_EQ(json.at("verb"), "moe plan");
  EXPECT_EQ(json.at("max_blocks_after"), json.at("fair_share_blocks"));
  EXPECT_GT(json.at("eta"), 0.99);
  std::int64_t before = 0, after = 0, replicas = 0, exported = 0;
  for (const auto& rank : json.at("ranks")) {
    before += rank.at("rows_before").get<std::int64_t>();
    after += rank.at("rows_after").get<std::int64_t>();
    replicas += static_cast<std::int64_t>(rank.at("replicas_held").size());
    exported += rank.at("replicas_exported").get<std::int64_t>();
  }
  EXPECT_EQ(before, 8 * 8192 * 8);
  EXPECT_EQ(after, before);
  EXPECT_EQ(replicas, json.at("replicas"));
  EXPECT_EQ(exported, replicas);
}

TEST_F(MoeVerbs, PlanTakesEveryPresetMethodAndPass) {
  for (const char* preset : {"paper", "tuned"}) {
    for (const char* method : {"searches", "bisection", "packing"}) {
      for (const char* pass : {"forward", "backward"}) {
        const auto json = json_of({"moe", "plan", "--preset", preset, "--method", method, "--pass",
                                   pass, "--tokens", "2048", "--experts", "60", "--ranks", "7"});
        EXPECT_EQ(json.at("method"), method);
        EXPECT_EQ(json.at("ranks").size(), 7U);
      }
    }
  }
  EXPECT_EQ(json_of({"moe", "plan", "--slots", "0"}).at("replicas"), 0);
  EXPECT_EQ(json_of({"moe", "plan", "--lambda", "1.5"}).at("integers").at("lambda"), 384);
  EXPECT_EQ(json_of({"moe", "plan", "--slack", "50"}).at("integers").at("slack"), 512);
  EXPECT_EQ(json_of({"moe", "plan", "--load", "balanced"}).at("replicas"), 0);
  EXPECT_TRUE(json_of({"moe", "plan", "--load", "balanced"}).at("eta").is_null());
}

TEST_F(MoeVerbs, PlanDrawsASelfContainedPicture) {
  const CommandResult result = run({"moe", "plan", "--svg", path("load.svg")});
  EXPECT_EQ(result.status, kSuccess) << result.err;
  EXPECT_NE(result.err.find("picture: "), std::string::npos);
  const std::string svg = read("load.svg");
  EXPECT_EQ(svg.rfind("<svg xmlns", 0), 0U);
  EXPECT_EQ(svg.find("href"), std::string::npos) << "refers to something outside";
  EXPECT_NE(svg.find("rank 7 after: "), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

TEST_F(MoeVerbs, WorkloadWritesWhatPlanReads) {
  const std::vector<std::string> load = {"--load",   "log-normal", "--parameter", "1",
                                         "--tokens", "128",        "--experts",   "32",
                                         "--top-k",  "4"};
  std::vector<std::string> arguments = {
      "moe",         "workload",      "--counts-out", path("c.csv"),
      "--trace-out", path("t.jsonl"), "--layer",      "3"};
  arguments.insert(arguments.end(), load.begin(), load.end());
  const auto json = json_of(arguments);
  EXPECT_EQ(json.at("rows"), 8 * 128 * 4);
  std::vector<std::string> direct = {"moe", "plan"};
  direct.insert(direct.end(), load.begin(), load.end());
  const auto expected = json_of(direct).at("ranks");
  EXPECT_EQ(json_of({"moe", "plan", "--counts", path("c.csv")}).at("ranks"), expected);
  EXPECT_EQ(json_of({"moe", "plan", "--counts", path("c.csv"), "--top-k", "4"}).at("ranks"),
            expected);
  EXPECT_EQ(json_of({"moe", "plan", "--trace", path("t.jsonl"), "--experts", "32"}).at("ranks"),
            expected);
  EXPECT_EQ(json_of({"moe", "plan", "--trace", path("t.jsonl"), "--ranks", "2"}).at("ranks").size(),
            2U);
  const auto twin = json_of({"moe", "workload", "--trace", path("t.jsonl"), "--twin"});
  EXPECT_LT(twin.at("kappa").at("experts"), 1.01);
  EXPECT_EQ(twin.at("rows"), json.at("rows"));
}

TEST_F(MoeVerbs, WorkloadListsThe147Configurations) {
  EXPECT_EQ(json_of({"moe", "workload", "--list"}).at("configurations").size(), 147U);
  const CommandResult table = run({"moe", "workload", "--list"});
  EXPECT_EQ(std::count(table.out.begin(), table.out.end(), '\n'), 148);
}

TEST_F(MoeVerbs, WhatIsWrongIsNamedInOneSentence) {
  expect_fails({"moe"}, kUsageError, "plan or workload");
  expect_fails({"moe", "plan", "--preset", "fast"}, kUsageError, "--preset");
  expect_fails({"moe", "plan", "--counts", "a", "--trace", "b"}, kUsageError, "--counts");
  expect_fails({"moe", "plan", "--tokens", "0"}, kUsageError, "--tokens");
  expect_fails({"moe", "plan", "--ranks", "9", "--experts", "8"}, kFailure,
               "at least one expert per rank, got 9 ranks and 8 experts");
  expect_fails({"moe", "plan", "--experts", "4", "--ranks", "2"}, kFailure,
               "8");  // top 8 of 4 experts
  expect_fails({"moe", "plan", "--counts", path("none.csv")}, kFailure, "none.csv");
  const std::string csv = write("bad.csv", "rank,expert,count\n0,0,3\n0,1,x\n");
  expect_fails({"moe", "plan", "--counts", csv}, kFailure, "line 3");
  const std::string odd = write("odd.csv", "rank,expert,count\n0,0,3\n0,1,2\n");
  expect_fails({"moe", "plan", "--counts", odd, "--top-k", "2"}, kFailure, "multiple of 2, got 5");
  const std::string trace =
      write("t.jsonl", "{\"layer\": 2, \"rank\": 0, \"topk_ids\": [[0, 1]]}\n{\"layer\"\n");
  expect_fails({"moe", "plan", "--trace", trace}, kFailure, "line 2");
  const std::string good =
      write("g.jsonl", "{\"layer\": 2, \"rank\": 0, \"topk_ids\": [[0, 1]]}\n");
  expect_fails({"moe", "plan", "--trace", good, "--layer", "7"}, kFailure, "layer 7");
  expect_fails({"moe", "plan", "--trace", good, "--top-k", "3"}, kFailure, "3 expert ids");
  expect_fails({"moe", "workload", "--counts", csv, "--twin"}, kFailure, "line 3");
}

}  // namespace
}  // namespace tileweave::cli

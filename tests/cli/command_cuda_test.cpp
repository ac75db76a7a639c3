// The command on a machine with a GPU.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "cli/command_line.h"
#include "tests/cli/command.h"
#include "tileweave/runtime/launch_order_record.h"

namespace tileweave::cli {
namespace {

TEST(DoctorOnAGpu, CountsTheLaunchOrderAndStoresIt) {
  Command command({"doctor", "--device", "cuda", "--json"});
  command.start();
  const CommandResult result = command.finish();
  ASSERT_EQ(result.status, kSuccess) << result.err;
  EXPECT_EQ(result.err, "");
  const auto report = nlohmann::json::parse(result.out);
  std::set<std::string> names;
  for (const auto& finding : report.at("findings")) names.insert(finding.at("name"));
  for (const char* name :
       {"GPU", "driver", "CUDA runtime", "shared memory", "queues", "memory operations in graphs",
        "green contexts", "peer access", "launch order", "launch order kept"}) {
    EXPECT_EQ(names.count(name), 1U) << name << " is missing in " << result.out;
  }
  const auto& order = report.at("launch_order");
  EXPECT_GE(order.at("equal").at("launches").get<std::int64_t>(), kLaunchesToTrust);
  EXPECT_GE(order.at("unequal").at("launches").get<std::int64_t>(), kLaunchesToTrust);
  const LaunchOrder stored =
      stored_launch_order(order.at("gpu").get<std::string>(), order.at("driver").get<std::string>(),
                          order.at("stored_in").get<std::string>());
  EXPECT_EQ(stored == LaunchOrder::kTrusted, order.at("trusted").get<bool>());
}

TEST(DoctorOnAGpu, WarnsAndGoesOnWhereTheCacheCannotBeWritten) {
  const CommandResult result = run({"doctor", "--device", "cuda", "--cache", "/dev/null/x"});
  EXPECT_EQ(result.status, kSuccess) << result.err;
  EXPECT_EQ(result.err.rfind("tileweave doctor: warning: ", 0), 0U) << result.err;
}

TEST(CheckOnAGpu, TakesStagesUnlessToldOtherwise) {
  for (const std::string granularity : {"", "ops", "stages"}) {
    std::vector<std::string> words = {"check",  "--device", "cuda",
                                      "--json", "--model",  "qwen3-0.6b"};
    if (!granularity.empty()) words.insert(words.end(), {"--granularity", granularity});
    const CommandResult result = run(words);
    ASSERT_EQ(result.status, kSuccess) << result.err;
    EXPECT_EQ(nlohmann::json::parse(result.out).at("granularity"),
              granularity.empty() ? "stages" : granularity);
  }
}

TEST(TuneOnAGpu, MeasuresProductsAndArmsAndKeepsThem) {
  const std::string cache =
      (std::filesystem::temp_directory_path() / "tileweave-tune-on-a-gpu").string();
  std::filesystem::remove_all(cache);
  const CommandResult result =
      run({"tune", "--device", "cuda", "--model", "qwen3-0.6b", "--batch", "1,4", "--steps", "8",
           "--repeat", "3", "--budget", "2", "--cache", cache, "--json"});
  ASSERT_EQ(result.status, kSuccess) << result.err;
  EXPECT_EQ(result.err, "");
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report.at("granularity"), "stages");
  for (const auto& one : report.at("cases")) {
    EXPECT_EQ(one.at("products").size(), 5U) << one;
    for (const auto& product : one.at("products")) EXPECT_EQ(product.at("source"), "measured");
    EXPECT_GE(one.at("arms").size(), 6U);
    for (const auto& arm : one.at("arms")) {
      EXPECT_FALSE(arm.contains("failure")) << arm;
    }
    EXPECT_TRUE(one.at("stored_in").is_string());
  }
  const CommandResult check =
      run({"check", "--device", "cuda", "--model", "qwen3-0.6b", "--cache", cache, "--json"});
  EXPECT_EQ(nlohmann::json::parse(check.out).at("knobs"), "cached");
  std::filesystem::remove_all(cache);
}

TEST(BenchSyncOnAGpu, MeasuresEveryArm) {
  const CommandResult result = run({"bench", "sync", "--quick", "--json"});
  ASSERT_EQ(result.status, kSuccess) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report.at("device"), "cuda");
  EXPECT_GE(report.at("arms").size(), 4U);
  for (const auto& arm : report.at("arms")) {
    EXPECT_GT(arm.at("median_us_per_hop").get<double>(), 0) << arm;
  }
}

TEST(BenchOfKernelsOnAGpu, HoldsEveryArmAgainstWhatItReads) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"bench", "gemm", "--rows", "1", "--repeat", "1", "--json"},
        std::vector<std::string>{"bench", "attention", "--repeat", "1", "--json"}}) {
    const CommandResult result = run(words);
    ASSERT_EQ(result.status, kSuccess) << result.err;
    const auto report = nlohmann::json::parse(result.out);
    EXPECT_GT(report.at("streaming_rate").get<double>(), 0);
    EXPECT_GE(report.at("rows").size(), 20U);
    for (const auto& row : report.at("rows")) {
      EXPECT_GT(row.at("us").get<double>(), 0) << row;
      EXPECT_GT(row.at("beside_us").get<double>(), 0) << row;
    }
  }
}

TEST(BenchDecodeOnAGpu, GrowsAndSaysWhatAttentionAdds) {
  for (const char* granularity : {"ops", "stages"}) {
    const CommandResult result =
        run({"bench", "decode", "--device", "cuda", "--model", "qwen3-0.6b", "--grow", "16+8,32+40",
             "--without-attention", "--repeat", "1", "--granularity", granularity, "--json"});
    ASSERT_EQ(result.status, kSuccess) << result.err;
    const auto report = nlohmann::json::parse(result.out);
    ASSERT_EQ(report.at("cases").size(), 2U);
    EXPECT_EQ(report.at("cases")[1].at("context"), 32);
    EXPECT_EQ(report.at("cases")[1].at("steps"), 40);
    for (const auto& which : report.at("cases")) {
      for (const auto& arm : which.at("arms")) EXPECT_FALSE(arm.contains("failure")) << arm;
      // A step without attention is shorter; how much is for the record, not for a test.
      EXPECT_GT(which.at("attention_us_per_layer").get<double>(), 0);
    }
  }
}

}  // namespace
}  // namespace tileweave::cli

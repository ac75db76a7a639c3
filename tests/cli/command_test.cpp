// The command as a user starts it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "cli/command_line.h"
#include "cli/cuda_machine.h"
#include "cli/interrupt.h"
#include "tests/cli/command.h"

namespace tileweave::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text = "tileweave";
  for (const std::string& word : words) text += " " + word;
  return text;
}

bool is_one_line(const std::string& text) {
  return !text.empty() && std::count(text.begin(), text.end(), '\n') == 1 && text.back() == '\n';
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "`" << part << "` is not in:\n" << text;
}

nlohmann::json parsed(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(json.is_object()) << text;
  return json;
}

nlohmann::json finding(const nlohmann::json& report, const std::string& device,
                       const std::string& name) {
  for (const auto& f : report.at("findings")) {
    if (f.at("device") == device && f.at("name") == name) return f;
  }
  ADD_FAILURE() << "no finding " << device << " " << name << " in " << report.dump(2);
  return {};
}

TEST(Command, PrintsItsVersionOnOneLine) {
  const CommandResult result = run({"--version"});
  EXPECT_EQ(result.status, kSuccess);
  EXPECT_TRUE(is_one_line(result.out)) << result.out;
  EXPECT_EQ(result.out.rfind("tileweave ", 0), 0U) << result.out;
  EXPECT_EQ(result.out.find(", cuda") != std::string::npos, cuda_build() == CudaBuild::kWith);
  EXPECT_EQ(result.err, "");
}

TEST(Command, PrintsHelpWithExamplesForEveryVerb) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--help"}, "doctor"},
      {{"-h"}, "bench"},
      {{"doctor", "--help"}, "--cache"},
      {{"bench", "--help"}, "sync"},
      {{"bench", "sync", "--help"}, "--repeat"},
      {{"bench", "sync", "--repeat", "3", "-h"}, "--quick"}};
  for (const auto& [arguments, word] : cases) {
    SCOPED_TRACE(joined(arguments));
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.status, kSuccess);
    expect_contains(result.out, "Examples:\n  tileweave ");
    expect_contains(result.out, word);
    EXPECT_EQ(result.err, "");
  }
}

TEST(Command, RefusesSenselessArgumentsInOneSentenceThatNamesThemAndTheHelp) {
  struct Case {
    std::vector<std::string> arguments;
    std::string names;
    std::string help;
  };
  const std::vector<Case> cases = {
      {{},
       "doctor, bench, info, generate, chat, logits, tokenize, check, trace, tune or moe",
       "tileweave --help"},
      {{"frobnicate"}, "`frobnicate`", "tileweave --help"},
      {{"--frobnicate"}, "`--frobnicate`", "tileweave --help"},
      {{"bench"}, "sync, decode, prefill, gemm or attention", "tileweave bench --help"},
      {{"bench", "speed"}, "`speed`", "tileweave bench --help"},
      {{"doctor", "--cure"}, "`--cure`", "tileweave doctor --help"},
      {{"doctor", "twice"}, "`twice`", "tileweave doctor --help"},
      {{"doctor", "doctor"}, "`doctor`", "tileweave doctor --help"},
      {{"doctor", "bench", "sync"}, "`bench`", "tileweave doctor --help"},
      {{"doctor", "--device", "gpu"}, "gpu", "tileweave doctor --help"},
      {{"doctor", "--device"}, "--device", "tileweave doctor --help"},
      {{"doctor", "--device", "cpu", "--device", "cpu"}, "--device", "tileweave doctor --help"},
      {{"doctor", "--cache="}, "--cache", "tileweave doctor --help"},
      {{"doctor", "--json=maybe"}, "--json", "tileweave doctor --help"},
      {{"bench", "sync", "--repeat", "0"}, "--repeat", "tileweave bench sync --help"},
      {{"bench", "sync", "--repeat", "-3"}, "--repeat", "tileweave bench sync --help"},
      {{"bench", "sync", "--repeat", "1e9"}, "--repeat", "tileweave bench sync --help"},
      {{"bench", "sync", "--repeat", "many"}, "many", "tileweave bench sync --help"},
      {{"bench", "sync", "--repeat", "9999999999999999999999"}, "--repeat", "bench sync --help"},
      {{"bench", "sync", "--repeat", "\n"}, "--repeat", "tileweave bench sync --help"},
      {{"bench", "sync", "line\nbreak"}, "`line break`", "tileweave bench sync --help"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(joined(c.arguments));
    const CommandResult result = run(c.arguments);
    EXPECT_EQ(result.status, kUsageError);
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(is_one_line(result.err)) << result.err;
    expect_contains(result.err, c.names);
    expect_contains(result.err, c.help);
  }
}

TEST(Doctor, ReportsTheEmulatedDeviceAndChecksAllItsWays) {
  const CommandResult result = run({"doctor", "--device", "cpu", "--json"});
  EXPECT_EQ(result.status, kSuccess) << result.err;
  EXPECT_EQ(result.err, "");
  const auto report = parsed(result.out);
  EXPECT_EQ(report.at("verb"), "doctor");
  for (const char* name : {"cores", "SIMD", "emulated SMs"}) {
    EXPECT_NE(finding(report, "cpu", name).at("found"), "") << name;
  }
  for (const char* way : {"throughput", "explore", "model"}) {
    EXPECT_EQ(finding(report, "cpu", way).at("status"), "ok") << way;
  }
  EXPECT_EQ(result.out.find("cuda"), std::string::npos);
  EXPECT_TRUE(report.at("launch_order").is_null());
}

TEST(Doctor, SaysInOneSentenceThatThereIsNoGpuAndGoesOn) {
  if (why_no_gpu().empty()) GTEST_SKIP() << "this machine has a usable GPU";
  Command command({"doctor"});
  command.start();
  const CommandResult result = command.finish();
  EXPECT_EQ(result.status, kSuccess) << result.err;
  EXPECT_EQ(result.err, "");
  expect_contains(result.out, "device cpu\n");
  expect_contains(result.out, "none: " + why_no_gpu() + "\n");
  EXPECT_TRUE(command.files().empty()) << "nothing was measured, so nothing may be stored";
  const auto report = parsed(run({"doctor", "--json"}).out);
  EXPECT_EQ(finding(report, "cuda", "GPU").at("status"), "attention");
}

TEST(Doctor, FailsWhenAskedForAGpuThatIsNotThere) {
  if (why_no_gpu().empty()) GTEST_SKIP() << "this machine has a usable GPU";
  const CommandResult result = run({"doctor", "--device", "cuda"});
  EXPECT_EQ(result.status, kFailure);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(is_one_line(result.err)) << result.err;
  expect_contains(result.err, why_no_gpu());

  const CommandResult json = run({"doctor", "--device", "cuda", "--json"});
  EXPECT_EQ(json.status, kFailure);
  EXPECT_EQ(json.err, result.err);
  expect_contains(parsed(json.out).at("error"), why_no_gpu());
}

TEST(Doctor, WorksWhereTheCacheCannotBeWritten) {
  const CommandResult result = run({"doctor", "--cache", "/dev/null/cache", "--json"});
  EXPECT_EQ(result.status, kSuccess) << result.err;
  parsed(result.out);
}

TEST(Doctor, FailsWhenItsReportCannotBeWritten) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  for (const char* form : {"--device=cpu", "--json", "--help"}) {
    Command command({"doctor", form});
    command.out_to("/dev/full").start();
    const CommandResult result = command.finish();
    EXPECT_EQ(result.status, kFailure) << form;
    expect_contains(result.err, "standard output");
  }
}

TEST(BenchSync, MeasuresTheEmulatedDeviceUnderItsName) {
  const CommandResult table = run({"bench", "sync", "--device", "cpu", "--quick"});
  EXPECT_EQ(table.status, kSuccess) << table.err;
  EXPECT_EQ(table.err, "");
  expect_contains(table.out, "emulated device");
  expect_contains(table.out, "us a hop");

  const CommandResult json =
      run({"bench", "sync", "--device", "cpu", "--quick", "--repeat", "4", "--json"});
  EXPECT_EQ(json.status, kSuccess) << json.err;
  EXPECT_EQ(json.err, "");
  const auto report = parsed(json.out);
  EXPECT_EQ(report.at("device"), "cpu");
  expect_contains(report.at("notice"), "emulated device");
  std::vector<std::string> names;
  for (const auto& arm : report.at("arms")) {
    names.push_back(arm.at("arm"));
    EXPECT_EQ(arm.at("us_per_hop").size(), 4U) << arm;
    EXPECT_EQ(arm.at("remark"), "") << arm;
    EXPECT_GT(arm.at("median_us_per_hop").get<double>(), 0) << arm;
    EXPECT_LE(arm.at("least_us_per_hop").get<double>(), arm.at("most_us_per_hop").get<double>());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"serial", "programmatic", "tile none", "tile wait_all",
                                             "tile launch_completion", "tile wait_first"}));
}

TEST(BenchSync, NeedsAGpuUnlessTheEmulatedDeviceIsNamed) {
  if (why_no_gpu().empty()) GTEST_SKIP() << "this machine has a usable GPU";
  const CommandResult result = run({"bench", "sync", "--quick"});
  EXPECT_EQ(result.status, kFailure);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(is_one_line(result.err)) << result.err;
  expect_contains(result.err, "--device cpu");
}

TEST(BenchOfKernels, NeedsAGpuAndSaysSoInOneSentence) {
  if (why_no_gpu().empty()) GTEST_SKIP() << "this machine has a usable GPU";
  for (const char* verb : {"gemm", "attention"}) {
    const CommandResult result = run({"bench", verb, "--json"});
    EXPECT_EQ(result.status, kFailure);
    EXPECT_TRUE(is_one_line(result.err)) << result.err;
    EXPECT_TRUE(nlohmann::json::parse(result.out).contains("error")) << result.out;
  }
}

TEST(Interrupt, EndsTheCommandAtOnceWithOneSentenceAndNoFile) {
  for (const StartedWith with : {StartedWith::kDefaultInterrupt, StartedWith::kIgnoredInterrupt}) {
    SCOPED_TRACE(with == StartedWith::kIgnoredInterrupt ? "ignored before" : "default before");
    Command command({"bench", "sync", "--device", "cpu", "--repeat", "100000", "--json"});
    command.start(with);
    command.wait_until_it_handles_interrupts();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // into the measurement
    const auto begin = std::chrono::steady_clock::now();
    command.interrupt();
    const CommandResult result = command.finish();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    EXPECT_EQ(result.status, kInterrupted);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "tileweave: interrupted\n");
    EXPECT_TRUE(command.files().empty());
  }
}

}  // namespace
}  // namespace tileweave::cli

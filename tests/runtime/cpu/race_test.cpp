// ThreadSanitizer finds races of kernels and protocol on the emulated device, and only real ones.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "tileweave/runtime/cpu/sanitizer.h"

namespace tileweave::test {
namespace {

struct Outcome {
  int status;
  std::string output;
};

Outcome run_program(const std::string& way, const std::string& fault) {
  const std::string command =
      std::string(TW_PROGRAM_DIR) + "/planted_race_program " + way + " " + fault + " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.output.append(buffer.data(), n);
  }
  outcome.status = pclose(pipe);
  return outcome;
}

class Races : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ways, Races, testing::Values("throughput", "explore"),
                         [](const auto& way) { return std::string(way.param); });

TEST_P(Races, NoneIsReportedWhereThereIsNone) {
  const Outcome outcome = run_program(GetParam(), "none");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.output.find("data race"), std::string::npos) << outcome.output;
}

TEST_P(Races, PlantedOnesAreFound) {
  if (!cpu::kTsan) GTEST_SKIP() << "needs a build under ThreadSanitizer";
  for (const char* fault : {"no_wait", "no_barrier", "no_signal_order", "stream_order"}) {
    const Outcome outcome = run_program(GetParam(), fault);
    EXPECT_NE(outcome.status, 0) << fault << ": " << outcome.output;
    EXPECT_NE(outcome.output.find("data race"), std::string::npos) << fault << outcome.output;
  }
}

}  // namespace
}  // namespace tileweave::test

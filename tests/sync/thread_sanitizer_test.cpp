// ThreadSanitizer must find every planted fault and nothing in the true protocol.
//
// The faults live in protocol_faults_program, one process each. In builds without ThreadSanitizer
// the cases are skipped by name.
#include <gtest/gtest.h>

#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace tileweave {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

constexpr int kRaceStatus = 66;

struct Outcome {
  int status = -1;
  std::string text;
};

Outcome run_program(const char* fault) {
  const std::string program = std::string(TW_PROGRAM_DIR) + "/protocol_faults_program";
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    // g++ 12's ThreadSanitizer cannot map its shadow where addresses are randomised widely.
    personality(ADDR_NO_RANDOMIZE);
    setenv("TSAN_OPTIONS", "exitcode=66:report_bugs=1:halt_on_error=0:color=never", 1);
    execl(program.c_str(), program.c_str(), fault, static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  Outcome outcome;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
    outcome.text.append(buffer, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)) {
    outcome.status = WEXITSTATUS(status);
  }
  return outcome;
}

class ThreadSanitizerFinds : public ::testing::TestWithParam<const char*> {};

TEST_P(ThreadSanitizerFinds, ThePlantedFault) {
  if (!kThreadSanitizer) {
    GTEST_SKIP() << "skipped: " << GetParam() << " (built without ThreadSanitizer)";
  }
  const Outcome outcome = run_program(GetParam());
  EXPECT_EQ(outcome.status, kRaceStatus) << outcome.text;
  EXPECT_NE(outcome.text.find("data race"), std::string::npos) << outcome.text;
}

INSTANTIATE_TEST_SUITE_P(Protocol, ThreadSanitizerFinds,
                         ::testing::Values("signal-without-release", "poll-without-acquire",
                                           "no-barrier-before-signal", "no-barrier-after-wait",
                                           "early-reuse"),
                         [](const auto& fault) {
                           std::string name = fault.param;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

TEST(ThreadSanitizer, FindsNothingInTheTrueProtocol) {
  if (!kThreadSanitizer) GTEST_SKIP() << "skipped: built without ThreadSanitizer";
  const Outcome outcome = run_program("none");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(outcome.text, "");
}

TEST(ProtocolFaultsProgram, RunsTheTrueProtocolAndRefusesUnknownFaults) {
  EXPECT_EQ(run_program("none").status, 0);
  EXPECT_EQ(run_program("no-such-fault").status, 2);
}

}  // namespace
}  // namespace tileweave

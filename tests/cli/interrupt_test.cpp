#include "cli/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace tileweave::cli {
namespace {

TEST(InterruptDeathTest, LeavesAtOnceOutsideASection) {
  EXPECT_EXIT(
      {
        exit_on_interrupt();
        { const UninterruptedSection section; }
        std::raise(SIGINT);
        std::exit(0);
      },
      testing::ExitedWithCode(kInterrupted), "^tileweave: interrupted\n$");
}

TEST(InterruptDeathTest, LeavesOnlyAtTheEndOfTheOutermostSection) {
  EXPECT_EXIT(
      {
        exit_on_interrupt();
        {
          const UninterruptedSection outer;
          {
            const UninterruptedSection inner;
            std::raise(SIGINT);
          }
          std::fputs("the file is whole; ", stderr);
        }
        std::exit(0);
      },
      testing::ExitedWithCode(kInterrupted), "^the file is whole; tileweave: interrupted\n$");
}

}  // namespace
}  // namespace tileweave::cli

#include "cli/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>

namespace tileweave::cli {
namespace {

// A signal handler takes no argument of ours: what it looks at has to be global.
std::atomic<int> num_sections{0};
std::atomic<bool> interrupt_pending{false};
std::atomic<bool> catching{false};
std::atomic<bool> caught{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

[[noreturn]] void leave() {
  constexpr char kSentence[] = "tileweave: interrupted\n";
  // Nobody is left to tell if this fails.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kSentence, sizeof kSentence - 1);
  // Not exit(): threads are running, and destructors might wait for them.
  ::_exit(kInterrupted);
}

void on_interrupt(int /*signal*/) {
  if (catching && !caught.exchange(true)) return;
  interrupt_pending = true;
  if (num_sections == 0) leave();
}

}  // namespace

void exit_on_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

UninterruptedSection::UninterruptedSection() {
  ++num_sections;
}

UninterruptedSection::~UninterruptedSection() {
  // The handler sets the flag, then reads the count; here the count falls before the flag is read:
  // at least one of the two sees the other.
  if (--num_sections == 0 && interrupt_pending) leave();
}

CaughtInterrupt::CaughtInterrupt() {
  caught = false;
  catching = true;
}

CaughtInterrupt::~CaughtInterrupt() {
  catching = false;
}

bool CaughtInterrupt::happened() const noexcept {
  return caught;
}

}  // namespace tileweave::cli

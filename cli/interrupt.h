// Ctrl-C: one sentence, exit status 130, at once and whatever the command is doing.
//
// Files are written whole or not at all, but a process that leaves in the middle of that would
// leave the temporary file behind: while an UninterruptedSection lives, leaving waits for its end.
// Only the process of the command calls exit_on_interrupt(); tests that call verbs as functions do
// not.
#pragma once

namespace tileweave::cli {

inline constexpr int kInterrupted = 130;

/// Also where the command was started with SIGINT ignored, as shells do in the background: who
/// sends the signal there means it.
void exit_on_interrupt();

class UninterruptedSection {
 public:
  UninterruptedSection();
  ~UninterruptedSection();
  UninterruptedSection(const UninterruptedSection&) = delete;
  UninterruptedSection& operator=(const UninterruptedSection&) = delete;
};

/// While one lives, the first SIGINT is only remembered (a second one leaves as above): for verbs
/// that end what they are doing and then say what they have.
class CaughtInterrupt {
 public:
  CaughtInterrupt();
  ~CaughtInterrupt();
  CaughtInterrupt(const CaughtInterrupt&) = delete;
  CaughtInterrupt& operator=(const CaughtInterrupt&) = delete;

  bool happened() const noexcept;
};

}  // namespace tileweave::cli

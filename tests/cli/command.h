// Starts the command as a child process and collects what it says; for tests only.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tileweave::cli {

struct CommandResult {
  int status = -1;  // exit status; 128 + signal when one ended it
  std::string out;
  std::string err;
};

enum class StartedWith : bool { kDefaultInterrupt, kIgnoredInterrupt };

/// One run in a temporary folder of its own, which is also its cache folder.
class Command {
 public:
  explicit Command(std::vector<std::string> arguments);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// Where standard output goes instead of being collected.
  Command& out_to(const std::string& file);
  /// Where standard input comes from; nowhere unless given.
  Command& in_from(const std::string& file);
  void start(StartedWith interrupt = StartedWith::kDefaultInterrupt);
  /// Returns once the process handles SIGINT itself; throws Error after `kPatience`.
  void wait_until_it_handles_interrupts() const;
  void interrupt() const;
  /// Kills the process and throws Error after `kPatience`.
  CommandResult finish();
  /// Files below its folder.
  std::vector<std::string> files() const;

 private:
  std::vector<std::string> arguments_;
  std::filesystem::path folder_;
  std::string out_file_;
  std::string err_file_;
  std::string in_file_ = "/dev/null";
  pid_t pid_ = -1;
};

CommandResult run(const std::vector<std::string>& arguments);

}  // namespace tileweave::cli

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/cli/command.h"
#include "tileweave/core/error.h"
#include "tileweave/core/target.h"

namespace tileweave::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(120);
constexpr auto kPause = std::chrono::milliseconds(5);

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What the command itself wrote: AddressSanitizer says on standard error, once or, where threads
/// meet, more often, that it knows swapcontext, on which the fibers of the emulated device stand,
/// in part only.
std::string without_word_of_sanitizer(std::string text) {
  if (!TW_ASAN) return text;
  const char* const warning = "WARNING: ASan doesn't fully support makecontext/swapcontext";
  for (std::size_t at = text.find(warning); at != std::string::npos; at = text.find(warning)) {
    const std::size_t before = text.rfind('\n', at);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    const std::size_t end = text.find('\n', at);
    text.erase(begin, end == std::string::npos ? end : end + 1 - begin);
  }
  return text;
}

/// The mask of caught signals in /proc.
bool catches_interrupt(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("SigCgt:", 0) != 0) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (SIGINT - 1) & 1) != 0;
  }
  return false;
}

void redirect(int descriptor, const char* path) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(99);
}

}  // namespace

Command::Command(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {
  std::string name = (fs::temp_directory_path() / "tileweave-command-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw Error("make temporary folder", name);
  folder_ = name;
  fs::create_directory(folder_ / "run");
  out_file_ = (folder_ / "out").string();
  err_file_ = (folder_ / "err").string();
}

Command::~Command() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

Command& Command::out_to(const std::string& file) {
  out_file_ = file;
  return *this;
}

Command& Command::in_from(const std::string& file) {
  in_file_ = file;
  return *this;
}

void Command::start(StartedWith interrupt) {
  std::vector<char*> argv = {const_cast<char*>(TW_COMMAND)};
  for (std::string& argument : arguments_) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string run_folder = (folder_ / "run").string();
  pid_ = ::fork();
  if (pid_ < 0) throw Error("start the command", "a child process");
  if (pid_ > 0) return;
  const int in = ::open(in_file_.c_str(), O_RDONLY);
  if (in < 0 || ::dup2(in, STDIN_FILENO) < 0) ::_exit(99);
  redirect(STDOUT_FILENO, out_file_.c_str());
  redirect(STDERR_FILENO, err_file_.c_str());
  ::signal(SIGINT, interrupt == StartedWith::kIgnoredInterrupt ? SIG_IGN : SIG_DFL);
  if (::chdir(run_folder.c_str()) != 0) ::_exit(99);
  ::setenv("XDG_CACHE_HOME", run_folder.c_str(), 1);
  ::execv(TW_COMMAND, argv.data());
  ::_exit(99);
}

void Command::wait_until_it_handles_interrupts() const {
  const auto end = Clock::now() + kPatience;
  while (!catches_interrupt(pid_)) {
    if (Clock::now() > end) throw Error("start the command", "a handler of SIGINT", "none");
    std::this_thread::sleep_for(kPause);
  }
}

void Command::interrupt() const {
  ::kill(pid_, SIGINT);
}

CommandResult Command::finish() {
  const auto end = Clock::now() + kPatience;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    // The destructor kills it.
    if (Clock::now() > end) throw Error("wait for the command", "an end", "none");
    std::this_thread::sleep_for(kPause);
  }
  pid_ = -1;
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          // Not from a device: /dev/full can be read without end.
          .out = fs::is_regular_file(out_file_) ? read(out_file_) : "",
          .err = without_word_of_sanitizer(read(err_file_))};
}

std::vector<std::string> Command::files() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "run")) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

CommandResult run(const std::vector<std::string>& arguments) {
  Command command(arguments);
  command.start();
  return command.finish();
}

}  // namespace tileweave::cli

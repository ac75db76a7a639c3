#include "tileweave/trace/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& got) {
  throw Error("write file " + path, "a writable regular file", got);
}

[[noreturn]] void refuse_errno(const std::string& path, const char* step) {
  const int error = errno;
  refuse(path, std::string(step) + ": " + std::strerror(error));
}

// Where the text has to land: `path`, or what it points to if it is a symbolic link.
std::string resolve_target(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) refuse_errno(path, "stat");
    if (::lstat(path.c_str(), &info) == 0) refuse(path, "a symbolic link that points nowhere");
    return path;
  }
  if (!S_ISREG(info.st_mode)) {
    refuse(path, S_ISDIR(info.st_mode) ? "a folder" : "something that is not a regular file");
  }
  // Renaming needs only a writable folder; a file its owner made read-only stays untouched.
  if (::access(path.c_str(), W_OK) != 0) refuse_errno(path, "access");
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (real == nullptr) refuse_errno(path, "realpath");
  return real.get();
}

// A new file beside the target that vanishes unless it is renamed over it.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& path, const std::string& target) : path_(path) {
    const std::string stem = target + ".tmp-" + std::to_string(::getpid()) + "-";
    for (int attempt = 0; file_ < 0; ++attempt) {
      name_ = stem + std::to_string(attempt);
      file_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file_ < 0 && (errno != EEXIST || attempt == 1000)) refuse_errno(path_, "open");
    }
  }
  ~TemporaryFile() {
    if (file_ >= 0) ::close(file_);
    if (!is_renamed_) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(file_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) refuse_errno(path_, "write");
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void rename_to(const std::string& target) {
    if (::fsync(file_) != 0) refuse_errno(path_, "fsync");
    const int file = file_;
    file_ = -1;
    if (::close(file) != 0) refuse_errno(path_, "close");
    if (::rename(name_.c_str(), target.c_str()) != 0) refuse_errno(path_, "rename");
    is_renamed_ = true;
  }

 private:
  const std::string& path_;
  std::string name_;
  int file_ = -1;
  bool is_renamed_ = false;
};

}  // namespace

void write_file_atomically(const std::string& path, std::string_view text) {
  const std::string target = resolve_target(path);
  TemporaryFile file(path, target);
  file.write(text);
  file.rename_to(target);
}

}  // namespace tileweave

#include "tileweave/core/atomic_file.h"

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

// Where the bytes have to land: `path`, or what it points to if it is a symbolic link.
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

}  // namespace

bool is_pipe(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
}

AtomicFile::AtomicFile(const std::string& path, NamedPipe pipe) : path_(path) {
  if (pipe == NamedPipe::kWriteThrough && is_pipe(path)) {
    file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) refuse_errno(path, "open");
    is_pipe_ = true;
    return;
  }
  target_ = resolve_target(path);
  const std::string stem = target_ + ".tmp-" + std::to_string(::getpid()) + "-";
  for (int attempt = 0; file_ < 0; ++attempt) {
    temporary_ = stem + std::to_string(attempt);
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0 && (errno != EEXIST || attempt == 1000)) refuse_errno(path_, "open");
  }
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  if (!is_renamed_ && !is_pipe_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse_errno(path_, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text)));
}

void AtomicFile::commit() {
  if (!is_pipe_ && ::fsync(file_) != 0) refuse_errno(path_, "fsync");
  const int file = file_;
  file_ = -1;
  if (::close(file) != 0) refuse_errno(path_, "close");
  if (is_pipe_) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) refuse_errno(path_, "rename");
  is_renamed_ = true;
}

void write_file_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace tileweave

#include "tileweave/core/file_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"

namespace tileweave {
namespace {

constexpr std::size_t kMaxLfsPointer = 1024;  // the format's own limit

[[noreturn]] void refuse(const std::string& path, const std::string& got) {
  throw Error("read file " + path, "a readable regular file", got);
}

std::string sentence_of(int error) {
  if (error == ENOENT || error == ENOTDIR) return "no such file";
  if (error == EACCES || error == EPERM) return "no permission to read it";
  return std::strerror(error);
}

class Descriptor {
 public:
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  explicit Descriptor(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (number_ < 0) refuse(path, sentence_of(errno));
  }
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

FileMap FileMap::open(const std::string& path) {
  if (path.find('\0') != std::string::npos) refuse(in_quotes(path), "a path with a zero byte");
  FileMap file(path);
  const Descriptor descriptor(path);
  struct stat info {};
  if (::fstat(descriptor.number(), &info) != 0) refuse(path, sentence_of(errno));
  if (S_ISDIR(info.st_mode)) refuse(path, "a folder");
  if (!S_ISREG(info.st_mode)) refuse(path, "something that is not a regular file");
  if (info.st_size == 0) return file;  // nothing can be mapped; an empty span is right
  const auto size = static_cast<std::size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.number(), 0);
  if (data == MAP_FAILED) refuse(path, sentence_of(errno));
  file.data_ = static_cast<const std::byte*>(data);
  file.size_ = size;
  return file;
}

FileMap::FileMap(FileMap&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  if (this != &other) {
    unmap();
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

FileMap::~FileMap() {
  unmap();
}

void FileMap::unmap() noexcept {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

bool is_git_lfs_pointer(std::string_view text) {
  return text.size() <= kMaxLfsPointer && text.starts_with("version https://git-lfs");
}

void require_no_git_lfs_pointer(const FileMap& file) {
  if (is_git_lfs_pointer(file.text())) {
    throw Error("read file " + file.path(), "the file itself",
                "a Git LFS pointer (`git lfs pull` fetches what it points to)");
  }
}

}  // namespace tileweave

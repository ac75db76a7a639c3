// A file's bytes, read-only, without a copy: the pages come from the disk when they are touched.
//
// Used for weights, tokenizers and every other file that a model directory holds. The bytes live as
// long as the FileMap, which may be moved without moving them. Symbolic links are followed. Throws
// Error naming the path when there is no such file, it may not be read or it is not a regular file
// (a folder, a pipe). A file that somebody shortens while it is mapped ends the process, as with
// every mmap: write new files beside old ones (core/atomic_file.h does).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tileweave {

class FileMap {
 public:
  static FileMap open(const std::string& path);
  ~FileMap();
  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  std::size_t size() const { return size_; }

 private:
  explicit FileMap(std::string path) : path_(std::move(path)) {}
  void unmap() noexcept;

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// True for the few lines that stand in for a large file in a git checkout made without Git LFS.
bool is_git_lfs_pointer(std::string_view text);

/// Throws Error naming the file if it is such a pointer.
void require_no_git_lfs_pointer(const FileMap& file);

}  // namespace tileweave

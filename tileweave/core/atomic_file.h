// Writes a whole file or nothing.
//
// The bytes go to a temporary file in the same folder, are flushed to the disk and renamed over the
// target: a reader sees the old file or the new one, never a part. Follows a symbolic link at
// `path`. Throws Error naming `path` if it cannot be written (no such folder, no permission, a full
// disk) or is not a regular file (a device, a folder); the temporary file is removed then and an
// old file stays as it was.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tileweave {

/// For files that are written piece by piece. Without a commit nothing is left behind.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// The last call: puts the file into its place.
  void commit();

 private:
  std::string path_;
  std::string target_;
  std::string temporary_;
  int file_ = -1;
  bool is_renamed_ = false;
};

void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace tileweave

// Writes a whole file or nothing.
//
// The bytes go to a temporary file in the same folder, are flushed to the disk and renamed over the
// target: a reader sees the old file or the new one, never a part. Follows a symbolic link at
// `path`. Throws Error naming `path` if it cannot be written (no such folder, no permission, a full
// disk) or is not a regular file (a device, a folder); the temporary file is removed then and an
// old file stays as it was. A named pipe is refused too, or written straight through: its reader
// sees every part as it comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tileweave {

enum class NamedPipe : std::uint8_t { kRefuse, kWriteThrough };

/// Whether `path` is a named pipe, or the end of a pipe as /dev/fd/N.
bool is_pipe(const std::string& path);

/// For files that are written piece by piece. Without a commit nothing is left behind.
class AtomicFile {
 public:
  /// Opening a named pipe waits for its reader.
  explicit AtomicFile(const std::string& path, NamedPipe pipe = NamedPipe::kRefuse);
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
  bool is_pipe_ = false;
};

void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace tileweave

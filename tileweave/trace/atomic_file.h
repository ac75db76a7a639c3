// Writes a whole file or nothing.
//
// The text goes to a temporary file in the same folder, is flushed to the disk and renamed over the
// target: a reader sees the old file or the new one, never a part. Follows a symbolic link at
// `path`. Throws Error naming `path` if it cannot be written or is not a regular file (a device, a
// folder); the temporary file is removed then and an old file stays as it was.
#pragma once

#include <string>
#include <string_view>

namespace tileweave {

void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace tileweave

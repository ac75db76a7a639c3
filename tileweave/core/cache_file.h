// Files that one run leaves for later ones: where they lie, and reading them without trusting them.
//
// What is found there may be missing, damaged or another program's, at any time: reading never
// throws. Writing swaps files atomically, so of two writers at once the last wins.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tileweave {

/// `folder`, or, if that is empty, $XDG_CACHE_HOME/tileweave or else ~/.cache/tileweave. Empty when
/// no folder is given and neither variable names an absolute one.
std::string cache_folder(const std::string& folder = {});

/// The bytes of a regular file; nothing where there is none, or where it cannot be read or is
/// larger than anything that this library would leave.
std::optional<std::string> read_cache_file(const std::string& path) noexcept;

/// Makes the folders on the way where they are missing. Throws Error naming the file.
void write_cache_file(const std::string& path, std::string_view text);

}  // namespace tileweave

// Counts the lines of an example's source that are marked as added for tile synchronisation.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace examples {

/// `source` is a path from the root of the repository, `compiled_as` the __FILE__ of a file beside
/// it. Looks there, then in every folder above the running program; empty if nowhere.
inline std::filesystem::path find_source(const std::string& source, const char* compiled_as) {
  std::error_code ignored;
  std::filesystem::path beside =
      std::filesystem::path(compiled_as).parent_path() / std::filesystem::path(source).filename();
  if (std::filesystem::exists(beside, ignored)) return beside;
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", ignored);
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    if (std::filesystem::exists(folder / source, ignored)) return folder / source;
  }
  return {};
}

/// Number of lines that end in the mark `// +`, as text; "unknown" when the source is not at hand.
inline std::string added_lines(const std::string& source, const char* compiled_as) {
  std::ifstream file(find_source(source, compiled_as));
  if (!file) return "unknown (no source at hand)";
  int count = 0;
  for (std::string line; std::getline(file, line);) count += line.ends_with("// +") ? 1 : 0;
  return std::to_string(count);
}

}  // namespace examples

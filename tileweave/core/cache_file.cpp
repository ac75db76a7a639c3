#include "tileweave/core/cache_file.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "tileweave/core/atomic_file.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLargestFile = 1 << 20;  // ours stay far below; others' are not read

/// An absolute folder named by an environment variable; the XDG rules ignore relative ones.
std::optional<fs::path> folder_of(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || !fs::path(text).is_absolute()) return std::nullopt;
  return fs::path(text);
}

}  // namespace

std::string cache_folder(const std::string& folder) {
  if (!folder.empty()) return folder;
  if (const auto cache = folder_of("XDG_CACHE_HOME")) return (*cache / "tileweave").string();
  if (const auto home = folder_of("HOME")) return (*home / ".cache" / "tileweave").string();
  return {};
}

std::optional<std::string> read_cache_file(const std::string& path) noexcept {
  try {
    std::error_code error;
    // Regular files only: opening a pipe would wait for its writer.
    if (!fs::is_regular_file(path, error) || error) return std::nullopt;
    const std::uintmax_t size = fs::file_size(path, error);
    if (error || size > kLargestFile) return std::nullopt;
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::nullopt;
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (file.bad()) return std::nullopt;
    return text;
  } catch (...) {  // out of memory, say
    return std::nullopt;
  }
}

void write_cache_file(const std::string& path, std::string_view text) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) throw Error("write " + path, "a folder that can be made or written", error.message());
  write_file_atomically(path, text);
}

}  // namespace tileweave

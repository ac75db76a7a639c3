// A folder of its own for each test, and the sentence of a refusal.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "tileweave-checkpoint-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("make temporary folder", name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name = "") const {
    return name.empty() ? path_.string() : (path_ / name).string();
  }
  /// Also makes the folders on the way. Returns the path.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

/// The sentence that `action` is refused with; empty when it is not.
template <class Action>
std::string refusal_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// A safetensors file made by hand: header length, header, `num_bytes` bytes counting up.
inline std::string safetensors_bytes(const std::string& header, std::size_t num_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes += static_cast<char>((std::uint64_t{header.size()} >> (8 * i)) & 0xff);
  }
  bytes += header;
  for (std::size_t i = 0; i < num_bytes; ++i) bytes += static_cast<char>(i);
  return bytes;
}

inline void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks \"" << part << "\"";
}

/// One sentence: something, and no line break or byte that a terminal would obey.
inline void expect_sentence(const std::string& text) {
  EXPECT_FALSE(text.empty()) << "not refused";
  EXPECT_LT(text.size(), 700u) << text;
  for (const char c : text) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << text;
}

}  // namespace tileweave::testing

// A cache in a folder of its own that collects what it notes; for tests only.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/tune/tune_cache.h"

namespace tileweave {

class TuneFolder {
 public:
  TuneFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tileweave-tune-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("make temporary folder", name);
    path_ = name;
  }
  ~TuneFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TuneFolder(const TuneFolder&) = delete;
  TuneFolder& operator=(const TuneFolder&) = delete;

  TuneCache cache() {
    return TuneCache(path_, [this](const std::string& sentence) { notes.push_back(sentence); });
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  const std::string& path() const { return path_; }

  std::vector<std::string> notes;

 private:
  std::string path_;
};

}  // namespace tileweave

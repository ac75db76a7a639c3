// A Hugging Face model directory made for one test: random weights, a tokenizer and a chat template
// of tests/models; for tests only.
#pragma once

#include <filesystem>
#include <string>

namespace tileweave::cli {

class ModelFolder {
 public:
  ModelFolder();
  ~ModelFolder();
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  std::string path() const { return folder_.string(); }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }
  std::string read(const std::string& name) const;
  void write(const std::string& name, const std::string& text) const;
  /// Replaces the first `from` in a file.
  void edit(const std::string& name, const std::string& from, const std::string& to) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace tileweave::cli

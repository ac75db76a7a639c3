// TuneCache: what was measured once, one small JSON file per question, for later runs to find.
//
//   TuneCache cache(cache_folder());
//   if (const auto value = cache.find(key)) ...        // JSON text that store() was given
//   cache.store(key, R"({"stages": 4})");
//
// Asking never throws: a file that is missing, damaged, of another format or about another question
// is a miss; what is there and no answer is said once, through `note`. Storing swaps the file
// atomically, so of two writers at once the last wins, and throws Error naming the file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tileweave/runtime/device.h"

namespace tileweave {

/// A question: everything that the answer depends on, by name.
struct TuneKey {
  std::string what;                          // begins the file's name: letters, digits, _ and -
  std::map<std::string, std::string> facts;  // {"gpu", "NVIDIA H200"}
};

/// The facts about the machine and this library: GPU, SMs, driver, version.
TuneKey key_on(const Device& device, std::string what, std::map<std::string, std::string> facts);

class TuneCache {
 public:
  using Note = std::function<void(const std::string& sentence)>;

  /// `folder` empty: there is no cache, every question is a miss and nothing is stored.
  explicit TuneCache(std::string folder = {}, Note note = {});

  std::optional<std::string> find(const TuneKey& key);
  /// Returns the file; empty where there is no folder. `json`: any JSON value.
  std::string store(const TuneKey& key, const std::string& json);
  /// The same, where that it cannot be stored is only noted.
  std::string keep(const TuneKey& key, const std::string& json);
  /// For an answer that find() gave and that makes no sense to who asked.
  void refuse(const TuneKey& key, const std::string& why);

  const std::string& folder() const { return folder_; }
  /// Entries of any kind and machine; 0 where the folder cannot be read.
  std::int64_t count() const;
  std::string path_of(const TuneKey& key) const;

 private:
  void note_once(const std::string& path, const std::string& sentence);

  std::string folder_;
  Note note_;
  std::set<std::string> noted_;  // files
};

}  // namespace tileweave

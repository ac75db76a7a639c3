// The weights of a model directory: one safetensors file or many shards, seen as one set of
// tensors.
//
// Checkpoint::open takes, in this order: `model.safetensors`; the shards that
// `model.safetensors.index.json` lists; the only other *.safetensors there is. The index is
// honoured: a shard it lists must be there and hold exactly the tensors it is said to hold, and no
// other model*.safetensors or NAME-I-of-N.safetensors may lie beside them. Nothing is copied:
// tensors are spans into mapped files and live as long as the Checkpoint, which may be moved.
// Throws Error naming the file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tileweave/models/checkpoint/safetensors.h"

namespace tileweave {

class Checkpoint {
 public:
  static Checkpoint open(const std::string& directory);

  const std::string& directory() const { return directory_; }
  /// The tensor of that name or null.
  const StoredTensor* find(std::string_view name) const;
  /// Sorted.
  std::vector<std::string> names() const;
  /// Bytes of all tensors.
  std::uint64_t total_bytes() const;
  const std::vector<Safetensors>& files() const { return files_; }

 private:
  explicit Checkpoint(std::string directory) : directory_(std::move(directory)) {}
  void open_shards();
  void add(Safetensors file);

  std::string directory_;
  std::vector<Safetensors> files_;
  // Values point into files_, whose tensors stay in place when the files move.
  std::map<std::string_view, const StoredTensor*, std::less<>> tensors_;
};

}  // namespace tileweave

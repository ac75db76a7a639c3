// WeightStore: places a model's weights in device memory, in the form that the operators read.
//
// Whoever has the numbers (a checkpoint, a random generator) gives them row by row; the store
// decides where rows go: straight to their place, or through one staging buffer into a packed
// matrix. So the device never holds much more than the model. assemble_weights asks for every
// weight of a model once, in the order of computation. Throws Error when the device is out of
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tileweave/models/model_weights.h"

namespace tileweave {

/// Puts `count` rows from row `first` on, row-major, at `to` in device memory; done when it
/// returns. A vector has rows of one element.
using PlaceRows = std::function<void(std::int64_t first, std::int64_t count, std::byte* to)>;

class WeightStore {
 public:
  WeightStore(Device& device, const WeightForm& form) : device_(device), form_(form) {}

  const WeightForm& form() const { return form_; }
  /// Row-major, any element type.
  Weight plain(const Shape& shape, DType dtype, const PlaceRows& place);
  /// (N, K) bf16; kPaired halves N. Where the form keeps copies, `row_major` is one that exists
  /// already, null: one is made.
  Weight packed(const Shape& shape, StripOrder order, const PlaceRows& place,
                void* row_major = nullptr);

  std::size_t bytes() const { return bytes_; }
  std::size_t copy_bytes() const { return copy_bytes_; }
  std::vector<DeviceMemory> take_memory() { return std::move(memory_); }

 private:
  std::byte* allocate(std::size_t bytes);
  /// Rows one after the other through the staging buffer.
  void pack_in_parts(const PackedLayout& layout, const PlaceRows& place, std::byte* to);

  Device& device_;
  WeightForm form_;
  std::size_t bytes_ = 0;
  std::size_t copy_bytes_ = 0;
  std::vector<DeviceMemory> memory_;
  std::optional<DeviceMemory> staging_;
  std::size_t staging_bytes_ = 0;
};

/// What a weight is for; decides how it lies.
enum class WeightRole : std::uint8_t { kEmbedding, kMatrix, kGateUp, kNorm, kBias };

struct WeightSpec {
  std::vector<std::string> names;  // of the tensors that lie one below the other
  Shape shape;                     // of all of them
  WeightRole role = WeightRole::kMatrix;
  void* row_major = nullptr;  // where a matrix that is to be packed lies row-major already
};

/// Of a matrix in bf16.
inline std::size_t row_major_bytes(const Shape& shape) {
  return static_cast<std::size_t>(shape.volume()) * sizeof(BFloat16);
}

/// The model's weights but for inv_freq, bytes and memory. A tied head is the embedding where
/// matrices are row-major, else `make` is asked for it as a matrix of the embedding's name.
ModelWeights assemble_weights(const ModelConfig& config, const WeightForm& form,
                              const std::function<Weight(const WeightSpec&)>& make);

/// Frequencies of the rotary embedding.
std::vector<float> rotary_frequencies(const ModelConfig& config);
/// Gives `weights` its frequencies and what the store holds.
ModelWeights finished(ModelWeights weights, const ModelConfig& config, Device& device,
                      WeightStore& store);

}  // namespace tileweave

// ModelWeights: a model's parameters on a device, in the layout that the operators read.
//
// Query, key and value projections of a layer lie one below the other as one matrix, gate and up
// likewise (rows of HF's (out, in) matrices). What form they take is the device's (WeightForm): as
// stored (f32, bf16 or f16), or matrices in bf16, packed. Made once by load_weights or
// random_weights (presets.h); the device must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tileweave/core/coord.h"
#include "tileweave/core/dtype.h"
#include "tileweave/kernels/gemm/packed_weights.h"
#include "tileweave/models/checkpoint/checkpoint.h"
#include "tileweave/models/checkpoint/config.h"
#include "tileweave/models/numeric_form.h"
#include "tileweave/runtime/device_memory.h"

namespace tileweave {

/// A tensor in device memory; `address` null: this model has none.
struct Weight {
  void* address = nullptr;
  Shape shape = {};
  DType dtype = DType::kF32;
  std::optional<StripOrder> packing = std::nullopt;  // nothing: row-major
  void* row_major = nullptr;  // the same numbers unpacked, where wide products are the vendor's

  explicit operator bool() const { return address != nullptr; }
};

/// Without a row-major copy.
std::size_t bytes_of(const Weight& weight);

struct LayerWeights {
  Weight attention_norm = {};       // (H)
  Weight qkv = {};                  // ((heads + 2 kv_heads) head_dim, H)
  Weight qkv_bias = {};             // ((heads + 2 kv_heads) head_dim)
  Weight q_norm = {}, k_norm = {};  // (head_dim), Qwen3
  Weight o = {};                    // (H, heads head_dim)
  Weight o_bias = {};               // (H)
  Weight mlp_norm = {};             // (H)
  Weight gate_up = {};              // (2 I, H)
  Weight gate_up_bias = {};         // (2 I)
  Weight down = {};                 // (H, I)
  Weight down_bias = {};            // (H)
};

struct ModelWeights {
  Weight embedding;  // (V, H), row-major
  std::vector<LayerWeights> layers;
  Weight final_norm;      // (H)
  Weight head;            // (V, H); where tied the embedding, unless that had to be packed as well
  Weight inv_freq;        // (head_dim / 2) f32, of the rotary embedding
  std::size_t bytes = 0;  // of it all
  std::size_t copy_bytes = 0;  // of row-major copies
  std::vector<DeviceMemory> memory;
  std::string note;  // a sentence on what differs from the files; empty: nothing

  /// Bytes that one decode step reads: all matrices and norms once, of the embedding only rows.
  std::size_t bytes_per_step() const;
};

/// How matrices lie, whether gate and up are interleaved, and whether packed ones are kept a second
/// time, row-major (an embedding is its own copy of a tied head).
struct WeightForm {
  MatrixLayout matrices = MatrixLayout::kRowMajor;
  StripOrder gate_up = StripOrder::kRows;
  WideProducts wide_products = WideProducts::kOwn;

  bool keeps_copies() const {
    return matrices == MatrixLayout::kPacked && wide_products == WideProducts::kVendor;
  }
};

inline WeightForm weight_form(const NumericForm& numbers, Granularity granularity,
                              WideProducts wide_products = WideProducts::kOwn) {
  return {.matrices = numbers.matrices,
          .gate_up = gate_up_order(granularity),
          .wide_products = wide_products};
}

/// Called now and then while weights are loaded.
using LoadProgress = std::function<void(std::size_t bytes_done, std::size_t bytes_in_all)>;

/// Throws Error naming file and tensor for what is missing, left over, has another shape than the
/// configuration says, or holds NaN or infinity, of which nothing right can come.
ModelWeights load_weights(Device& device, const Checkpoint& checkpoint, const ModelConfig& config,
                          const LoadProgress& progress = nullptr,
                          Granularity granularity = Granularity::kOps);
ModelWeights load_weights(Device& device, const Checkpoint& checkpoint, const ModelConfig& config,
                          const WeightForm& form, const LoadProgress& progress = nullptr);

/// Weights of these shapes at addresses that nothing may read: for plans that are verified, not
/// run.
ModelWeights described_weights(const ModelConfig& config, DType dtype, const WeightForm& form = {});

}  // namespace tileweave

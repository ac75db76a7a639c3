// ModelWeights: a model's parameters on a device, in the layout that the operators read.
//
// Query, key and value projections of a layer lie one below the other as one matrix, gate and up
// likewise (rows of HF's (out, in) matrices). Element types stay as stored: f32, bf16 or f16. Made
// once by load_weights; the device must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tileweave/core/coord.h"
#include "tileweave/core/dtype.h"
#include "tileweave/models/checkpoint/checkpoint.h"
#include "tileweave/models/checkpoint/config.h"
#include "tileweave/models/device_memory.h"

namespace tileweave {

/// A tensor in device memory; `address` null: this model has none.
struct Weight {
  void* address = nullptr;
  Shape shape = {};
  DType dtype = DType::kF32;

  explicit operator bool() const { return address != nullptr; }
};

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
  Weight embedding;  // (V, H)
  std::vector<LayerWeights> layers;
  Weight final_norm;  // (H)
  Weight head;        // (V, H); the embedding where the head is tied
  Weight inv_freq;    // (head_dim / 2) f32, of the rotary embedding
  std::size_t bytes = 0;
  std::vector<DeviceMemory> memory;

  /// Bytes that one decode step reads: all matrices and norms once, of the embedding only rows.
  std::size_t bytes_per_step() const;
};

/// Called now and then while weights are loaded.
using LoadProgress = std::function<void(std::size_t bytes_done, std::size_t bytes_in_all)>;

/// Throws Error naming file and tensor for what is missing, left over, has another shape than the
/// configuration says, or holds NaN or infinity, of which nothing right can come.
ModelWeights load_weights(Device& device, const Checkpoint& checkpoint, const ModelConfig& config,
                          const LoadProgress& progress = nullptr);

/// Weights of these shapes at addresses that nothing may read: for plans that are verified, not
/// run.
ModelWeights described_weights(const ModelConfig& config, DType dtype);

}  // namespace tileweave

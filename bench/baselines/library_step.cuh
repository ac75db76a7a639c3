// LibraryStep: one decode step of a dense model out of cuBLASLt products and our small kernels.
//
//   LibraryStep step(device, library, config, weights, {.batch = 8, .max_tokens = 192});
//   step.restart(128);                        // every sequence holds 128 tokens
//   for (...) step.run(); ... step.stream()   // each appends one token to every sequence
//
// The operators are those of granularity `ops` (norm of the residual sum, SiLU-mul, argmax), with
// QK-norm, RoPE, KV write and attention in one kernel; products have f32 results. Everything is one
// CUDA graph in one stream. `weights` lie row-major. One host thread; what it is given must outlive
// it. Throws Error.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/baselines/graph_recorder.cuh"
#include "bench/baselines/tuned_product.cuh"
#include "tileweave/models/kv_cache.h"
#include "tileweave/models/model_weights.h"
#include "tileweave/plan/plan.h"

namespace tileweave::bench {

struct LibraryStepOptions {
  std::int64_t batch = 1;
  std::int64_t max_tokens = 0;  // of a sequence
};

class LibraryStep {
 public:
  LibraryStep(Device& device, const CublasLt& library, const ModelConfig& config,
              const ModelWeights& weights, const LibraryStepOptions& options);
  ~LibraryStep();
  LibraryStep(const LibraryStep&) = delete;
  LibraryStep& operator=(const LibraryStep&) = delete;

  /// Waits; then every sequence holds `context` tokens (random keys and values) and its next input
  /// is first_id of it.
  void restart(std::int64_t context);
  static std::int32_t first_id(std::int64_t sequence, std::int64_t vocab_size);
  void run() { recorder_.replay(stream_); }
  cudaStream_t stream() const { return stream_; }

  std::vector<float> logits();  // (batch, V) of the last step; waits
  std::size_t num_graph_nodes() const { return recorder_.num_graph_nodes(); }
  const std::map<ProductForm, std::unique_ptr<TunedProduct>>& products() const { return products_; }
  std::size_t kv_bytes(std::int64_t tokens) const;  // of all sequences

 private:
  struct LinearUse {
    const Weight* weight;
    TensorId x, y;
  };

  TensorId constant(const std::string& name, const Shape& shape, DType dtype, void* address);
  TensorId value(const std::string& name, const Shape& shape, DType dtype);
  TensorId weight(const std::string& name, const Weight& weight);
  void* address(TensorId id) const { return plan_.tensors()[id].spec.address; }
  ProductForm shape_of(const LinearUse& use) const;
  /// Tunes the product of this shape once, over the same weight of all layers.
  void tune(const std::vector<LinearUse>& uses);
  void linear(const std::string& name, const LinearUse& use);
  void add_layers();
  void add_head();
  std::int64_t tile_n(std::int64_t columns) const;

  Device& device_;
  const CublasLt& library_;
  const ModelConfig& config_;
  const ModelWeights& weights_;
  LibraryStepOptions options_;
  KvCache cache_;
  std::vector<KvCache::SequenceId> sequences_;
  std::int64_t max_pages_ = 0;
  Plan plan_;  // of its tensors alone
  std::vector<DeviceMemory> memory_;
  std::map<ProductForm, std::unique_ptr<TunedProduct>> products_;
  GraphRecorder recorder_;
  cudaStream_t stream_ = nullptr;

  // Inputs (B), values (B, columns).
  TensorId ids_, positions_, slots_, sequence_of_row_, past_, page_table_;
  TensorId sum_[2], norm_, qkv_, attention_, delta_, gate_up_, act_, logits_, next_;
};

}  // namespace tileweave::bench

// Paged attention: causal, grouped-query, over a paged cache; prefill and decode rows in one
// launch.
//
// Row t of sequence s at position p attends to that sequence's keys 0 .. p: those before past[s]
// lie in the pool, through the page table; the others are this step's rows, first_row[s] onwards.
// All f32 (CPU) or all bf16 (GPU; fp32 sums, weights rounded to bf16; head_dim 64, 80, 96, 128).
// Softmax runs over chunks of keys at fixed absolute positions, so the bits of a row depend on its
// own query, keys, values and position alone. Rows without a sequence (-1) get zeros. Kernel tiles:
//   q               slot 0  {m, g}: (tile_m, columns of the query heads of kv-head group g)
//   k_step, v_step  slots 1, 2  {m, g}: (tile_m, columns of group g), {0 .. m, g} by work {m, g};
//                   bf16: {0, g}, all rows
//   k_past, v_past  state, all rows, columns of group g; read before the first wait (no slot)
//   positions .. page_table  constants, read before the first wait (no slot)
//   out             slot 3  {m, g}: as q; with splits of the keys the last arriver signals
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

struct PagedAttentionOptions {
  std::string name = "paged_attention";
  std::int64_t head_dim = 0;  // even; query heads and kv heads follow from the shapes
  std::int64_t page_size = 16;
  std::optional<float> scale = std::nullopt;  // of q·k; default 1 / sqrt(head_dim)
  std::int64_t tile_m = 8;                    // rows per work
  // A divisor of the number of kv heads. More of them read longer stretches of the pool's rows,
  // which decode over a long past gains from; fewer make more works.
  std::int64_t kv_heads_per_work = 1;
  // bf16: works that share the keys of a row tile and kv head, as far as there are keys; changes no
  // bit. 0: enough for an H200.
  std::int64_t num_splits = 0;
  std::int64_t num_blocks = 0;             // persistent blocks; 0: one per work
  std::int64_t prefetch_bytes = 64 << 10;  // of older keys and values, before the first wait;
                                           // bf16: always as many as a block holds
  TileOrder order = TileOrder::identity();
  double cost_of_tile = 1;  // ticks of tile_m rows; a ragged last tile in proportion
  std::optional<Cost> cost = std::nullopt;  // instead of the above
  std::optional<EdgePolicy> edge = std::nullopt;
};

/// T rows, S sequences, H query heads, KV kv heads, D = head_dim. Numbers i32.
struct PagedAttentionTensors {
  TensorId q = kNoTensor;          // (T, H * D)
  TensorId k_step = kNoTensor;     // (T, KV * D): row t lies at row slots[t] of its memory
  TensorId v_step = kNoTensor;     //   (the pool; TensorSpec::address), KV * D apart
  TensorId k_past = kNoTensor;     // (pool rows, KV * D), state: token j of sequence s at row
  TensorId v_past = kNoTensor;     //   page_table[s][j / page_size] * page_size + j % page_size
  TensorId positions = kNoTensor;  // (T) constants, as all below
  TensorId slots = kNoTensor;      // (T)
  TensorId sequence_of_row = kNoTensor;  // (T); -1: padding
  TensorId first_row = kNoTensor;        // (S)
  TensorId past = kNoTensor;             // (S)
  TensorId page_table = kNoTensor;       // (S, max_pages)
  TensorId out = kNoTensor;              // (T, H * D)
};

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit. Rows of a sequence are contiguous and in position order.
NodeSpec paged_attention(const TensorTable& tensors, const PagedAttentionOptions& options,
                         const PagedAttentionTensors& operands);

/// paged_attention and decode_attention with f32 operands.
void add_attention_cpu(KernelLibrary& kernels);
/// Both with bf16 operands. In builds without CUDA: throws Error saying so.
void add_attention_cuda(KernelLibrary& kernels);

inline void add_attention(Device& device) {
  device.name() == "cuda" ? add_attention_cuda(device.kernels())
                          : add_attention_cpu(device.kernels());
}

}  // namespace tileweave

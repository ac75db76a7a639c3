// Decode attention: QK-norm, RoPE, KV write and paged attention of one row per sequence, in one
// node.
//
// qkv (T, (heads + 2 kv_heads) head_dim) f32. Pool, k_step, v_step and out all f32 (CPU) or all
// bf16 (GPU; head_dim 64, 80, 96, 128, at most 8 query heads per kv head). Row t, token
// positions[t] of its sequence, attends to the keys before it, which lie in the pool (page_table),
// and to its own key, which it writes to row slots[t] of k_step's memory, with its value. Queries
// and keys are rounded to the pool's type after RoPE. Without a sequence or a slot: zeros, nothing
// is written. Bits of a row depend on that row alone. Kernel tiles of work {t, g}, g a kv head;
// with splits several works share one, and the last arriver signals out:
//   qkv     slot 0  {t}: (1, all columns)     k_step, v_step  slots 1, 2  {t, g}: (1, head_dim)
//   out     slot 3  {t, g}: (1, query heads of g)     all others: read before the wait
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

struct DecodeAttentionOptions {
  std::string name = "decode_attention";
  std::int64_t heads = 0;      // query heads, a multiple of kv_heads
  std::int64_t kv_heads = 0;   // key heads, and as many value heads
  std::int64_t pool_rows = 0;  // rows at the addresses of k_step and v_step; 0: those of k_past
  std::int64_t page_size = 16;
  std::optional<float> scale = std::nullopt;  // of q·k; default 1 / sqrt(head_dim)
  float attention_factor = 1;                 // of cosine and sine
  float eps = 1e-6F;                          // of the QK-norm
  // bf16: works that share the keys of a row and kv head, as far as there are keys; changes no bit.
  // 0: enough for an H200.
  std::int64_t num_splits = 0;
  // bf16: passes of 128 keys that a block holds, 1 or 2: fetched at once, fewer blocks per SM. 0:
  // two where blocks are few and two fit.
  std::int64_t buffers = 0;
  std::int64_t shared_limit = 227 << 10;  // DeviceLimits::shared_bytes_per_block; an H200's
  std::int64_t num_blocks = 0;            // persistent blocks; 0: one per work
  std::int64_t shared_padding = 0;  // bytes on top of what the kernel uses: fewer blocks per SM
  TileOrder order = TileOrder::identity();
  double cost_of_work = 1;                  // ticks
  std::optional<Cost> cost = std::nullopt;  // instead of the above
  std::optional<EdgePolicy> edge = std::nullopt;
};

struct DecodeAttentionTensors {
  TensorId qkv = kNoTensor;
  TensorId positions = kNoTensor;                   // (T) constants, as all numbers below
  TensorId slots = kNoTensor;                       // (T)
  TensorId sequence_of_row = kNoTensor;             // (T); -1: padding
  TensorId page_table = kNoTensor;                  // (S, max_pages)
  TensorId inv_freq = kNoTensor;                    // (head_dim / 2) f32
  TensorId k_past = kNoTensor, v_past = kNoTensor;  // (pool rows, kv_heads head_dim), state
  TensorId k_step = kNoTensor, v_step = kNoTensor;  // (T, kv_heads head_dim), results
  TensorId out = kNoTensor;                         // (T, heads head_dim), result
  /// Both or neither: weights (head_dim) of the QK-norm, f32 or bf16.
  TensorId q_norm = kNoTensor, k_norm = kNoTensor;
};

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit. No sequence has two rows.
NodeSpec decode_attention(const TensorTable& tensors, const DecodeAttentionOptions& options,
                          const DecodeAttentionTensors& operands);

/// Parts of add_attention_cpu and add_attention_cuda.
void add_decode_attention_cpu(KernelLibrary& kernels);
void add_decode_attention_cuda(KernelLibrary& kernels);

}  // namespace tileweave

// RoPE with KV write: rotates query and key heads and writes this step's keys and values.
//
// qkv (T, (heads + 2 kv_heads) head_dim) f32; q (T, heads head_dim), k_step and v_step (T, kv_heads
// head_dim) f32, on a GPU bf16; positions, slots (T) i32 and inv_freq (head_dim / 2) f32 constants.
// Pairs (i, i + head_dim / 2) turn by fp32(position) * inv_freq[i]. Row t of k_step and v_step lies
// at row slots[t] of their address, a pool of pool_rows rows; a slot outside it marks padding: no
// keys or values, zeros in q. With q_norm and k_norm heads pass RMSNorm first (bits of qk_norm).
// Kernel tiles of work {m, g}, g: tile_kv_heads key heads and the query heads that share them:
//   qkv     slot 0  (tile_m, unit head_dim), several; unit = gcd(tile_kv_heads, kv_heads)
//   q       slot 1  {m, g}: (tile_m, query heads of the group head_dim)
//   k_step  slot 2, v_step  slot 3  {m, g}: (tile_m, tile_kv_heads head_dim) of logical rows
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

struct RopeKvOptions {
  std::string name = "rope_kv";
  std::int64_t heads = 0;          // query heads, a multiple of kv_heads
  std::int64_t kv_heads = 0;       // key heads, and as many value heads
  std::int64_t pool_rows = 0;      // rows at the addresses of k_step and v_step; 0: T, only where
                                   // these tensors have no address of their own
  float attention_factor = 1;      // of cosine and sine
  float eps = 1e-6F;               // of the fused QK-norm
  std::int64_t tile_m = 8;         // rows per work
  std::int64_t tile_kv_heads = 0;  // key heads per work; 0: all of them
  std::int64_t num_blocks = 0;     // persistent blocks; 0: one per work
  TileOrder order = TileOrder::identity();
  double cost_of_tile = 1;                  // ticks of a whole tile; a ragged one in proportion
  std::optional<Cost> cost = std::nullopt;  // instead of the above
  std::optional<EdgePolicy> edge = std::nullopt;
};

struct RopeKvTensors {
  TensorId qkv = kNoTensor, positions = kNoTensor, slots = kNoTensor, inv_freq = kNoTensor;
  TensorId q = kNoTensor, k_step = kNoTensor, v_step = kNoTensor;  // results
  /// Both or neither: weights (head_dim) of the fused QK-norm, f32, bf16 or f16.
  TensorId q_norm = kNoTensor, k_norm = kNoTensor;
};

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit.
NodeSpec rope_kv(const TensorTable& tensors, const RopeKvOptions& options,
                 const RopeKvTensors& operands);

void add_rope_cpu(KernelLibrary& kernels);
/// Results in bf16, no f16 weights. In builds without CUDA: throws Error saying so.
void add_rope_cuda(KernelLibrary& kernels);

inline void add_rope(Device& device) {
  device.name() == "cuda" ? add_rope_cuda(device.kernels()) : add_rope_cpu(device.kernels());
}

}  // namespace tileweave

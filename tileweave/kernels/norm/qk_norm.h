// QK-norm: RMSNorm over head_dim of every query and key head of qkv; value heads are copied.
//
// qkv and out (T, (heads + 2 kv_heads) head_dim) f32: query heads, then key heads, then value
// heads; q_weight and k_weight (head_dim) f32, bf16 or f16 (both the same); fp32 arithmetic. Heads
// are independent of each other and of all other rows. Kernel tiles and their coordinates:
//   qkv       slot 0  {m, g}: (tile_m, tile_heads head_dim)
//   q_weight, k_weight: constants, read before the first wait (no slots)
//   out       slot 1  {m, g}: the same
// g runs over all heads: a group may hold query, key and value heads. out may share the buffer of
// qkv.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

struct QkNormOptions {
  std::string name = "qk_norm";
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // key heads, and as many value heads
  float eps = 1e-6F;
  std::int64_t tile_m = 8;      // rows per work
  std::int64_t tile_heads = 0;  // heads per work; 0: all of them
  std::int64_t num_blocks = 0;  // persistent blocks; 0: one per work
  TileOrder order = TileOrder::identity();
  double cost_of_tile = 1;                  // ticks of a whole tile; a ragged one in proportion
  std::optional<Cost> cost = std::nullopt;  // instead of the above
  std::optional<EdgePolicy> edge = std::nullopt;
};

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit.
NodeSpec qk_norm(const TensorTable& tensors, const QkNormOptions& options, TensorId qkv,
                 TensorId q_weight, TensorId k_weight, TensorId out);

/// Parts of add_norm_cpu and add_norm_cuda.
void add_qk_norm_cpu(KernelLibrary& kernels);
void add_qk_norm_cuda(KernelLibrary& kernels);

}  // namespace tileweave

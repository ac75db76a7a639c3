// QkNormArgs: the argument struct of every QK-norm kernel.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/dtype.h"
#include "tileweave/plan/resources.h"
#include "tileweave/sync/access.h"
#include "tileweave/tile/tiling.h"

namespace tileweave {

inline constexpr KernelResources kQkNormResources{.threads = 256, .registers_per_thread = 64};

/// Indices of the node's operands, and slots of the kernel's SyncContext.
struct QkNormOperands {
  static constexpr int kQkv = 0;
  static constexpr int kQWeight = 1;
  static constexpr int kKWeight = 2;
  static constexpr int kOut = 3;
  static constexpr int kSlotQkv = 0;
  static constexpr int kSlotOut = 1;
  static constexpr int kSlots = 2;
};

template <class W>
struct QkNormArgs {
  Produced<float> qkv;
  Stable<W> q_weight, k_weight;
  Output<float> out;
  Tiling tiles;  // of qkv and out, whole heads: tile `work` is the box of a work
  std::int64_t heads, kv_heads, head_dim;
  std::int64_t num_blocks;
  float eps;
};

/// "qk_norm.bf16": element type of both weights.
std::string qk_norm_kernel_name(DType weight);

}  // namespace tileweave

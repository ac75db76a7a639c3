// RmsNormArgs: the argument struct of every RMSNorm kernel, the same bytes on both devices.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/coord.h"
#include "tileweave/core/dtype.h"
#include "tileweave/plan/resources.h"
#include "tileweave/sync/access.h"

namespace tileweave {

/// One block: what the CUDA kernel is compiled with, and what the emulated device charges.
inline constexpr int kRmsNormThreads = 256;
inline constexpr std::int64_t kRmsNormSharedBytes = 64;
inline constexpr KernelResources kRmsNormResources{
    .threads = kRmsNormThreads, .registers_per_thread = 64, .shared_bytes = kRmsNormSharedBytes};

/// Indices of the node's operands, and slots of the kernel's SyncContext.
struct RmsNormOperands {
  static constexpr int kX = 0;
  static constexpr int kWeight = 1;
  static constexpr int kY = 2;
  static constexpr int kSlotX = 0;
  static constexpr int kSlotY = 1;
  static constexpr int kSlots = 2;
};

template <class X, class W, class Y>
struct RmsNormArgs {
  Produced<X> x;
  Stable<W> weight;
  Output<Y> y;
  std::int64_t rows, cols, tile_m;
  std::int64_t num_works, num_blocks;
  float eps;

  TW_HOST_DEVICE constexpr std::int64_t first_row(std::int64_t work) const { return work * tile_m; }
  TW_HOST_DEVICE constexpr std::int64_t end_row(std::int64_t work) const {
    return min64(rows, first_row(work) + tile_m);
  }
};

/// "rms_norm.f32.bf16.f32": element types of x, weight and y.
std::string rms_norm_kernel_name(DType x, DType weight, DType y);

}  // namespace tileweave

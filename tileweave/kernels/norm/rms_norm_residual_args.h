// RmsNormResidualArgs: the argument struct of every RMSNorm-with-residual kernel.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/dtype.h"
#include "tileweave/plan/resources.h"
#include "tileweave/sync/access.h"
#include "tileweave/tile/tiling.h"

namespace tileweave {

inline constexpr std::int64_t kRmsNormResidualSharedBytes = 64;
inline constexpr KernelResources kRmsNormResidualResources{
    .threads = 256, .registers_per_thread = 64, .shared_bytes = kRmsNormResidualSharedBytes};

/// Indices of the node's operands, and slots of the kernel's SyncContext.
struct RmsNormResidualOperands {
  static constexpr int kX = 0;
  static constexpr int kDelta = 1;
  static constexpr int kWeight = 2;
  static constexpr int kSum = 3;
  static constexpr int kY = 4;
  static constexpr int kSlotX = 0;
  static constexpr int kSlotDelta = 1;
  static constexpr int kSlotSum = 2;
  static constexpr int kSlotY = 3;
  static constexpr int kSlots = 4;
};

template <class W, class Y>
struct RmsNormResidualArgs {
  Produced<float> x, delta;
  Stable<W> weight;
  Output<float> sum;
  Output<Y> y;
  Tiling rows;  // of x, delta, sum and y: tile `work` is the box of a work
  std::int64_t num_blocks;
  float eps;
};

/// "rms_norm_residual.bf16.f32": element types of weight and y.
std::string rms_norm_residual_kernel_name(DType weight, DType y);

}  // namespace tileweave

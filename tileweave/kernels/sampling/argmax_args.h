// ArgmaxArgs: the argument struct of every argmax kernel.
#pragma once

#include <cstdint>

#include "tileweave/core/coord.h"
#include "tileweave/plan/resources.h"
#include "tileweave/sync/access.h"

namespace tileweave {

inline constexpr const char* kArgmaxKernel = "argmax.f32";
inline constexpr int kArgmaxThreads = 256;
inline constexpr KernelResources kArgmaxResources{.threads = kArgmaxThreads,
                                                  .registers_per_thread = 32};

/// Indices of the node's operands, and slots of the kernel's SyncContext.
struct ArgmaxOperands {
  static constexpr int kLogits = 0;
  static constexpr int kIds = 1;
  static constexpr int kSlotLogits = 0;
  static constexpr int kSlotIds = 1;
  static constexpr int kSlots = 2;
};

/// The largest element of some columns of a row; id -1: they are all NaN.
struct ArgmaxPart {
  float value;
  std::int32_t id;
};

struct ArgmaxArgs {
  Produced<float> logits;
  Output<std::int32_t> ids;
  ArgmaxPart* parts;  // (num_works, tile_m), where rows are split
  std::int64_t rows, cols, tile_m, tile_n, num_blocks;

  TW_HOST_DEVICE constexpr std::int64_t tiles_n() const { return ceil_div(cols, tile_n); }
  TW_HOST_DEVICE constexpr std::int64_t num_works() const {
    return ceil_div(rows, tile_m) * tiles_n();
  }
  TW_HOST_DEVICE constexpr std::int64_t row_tile(std::int64_t work) const {
    return work / tiles_n();
  }
  TW_HOST_DEVICE constexpr std::int64_t col_tile(std::int64_t work) const {
    return work % tiles_n();
  }
};

}  // namespace tileweave

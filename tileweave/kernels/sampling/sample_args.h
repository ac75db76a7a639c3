// SampleArgs: the argument struct of every sampling kernel.
#pragma once

#include <cstdint>

#include "tileweave/core/coord.h"
#include "tileweave/plan/resources.h"
#include "tileweave/sync/access.h"

namespace tileweave {

inline constexpr const char* kSampleKernel = "sample.f32";
inline constexpr int kSampleThreads = 512;
inline constexpr KernelResources kSampleResources{.threads = kSampleThreads,
                                                  .registers_per_thread = 64};

/// Indices of the node's operands, and slots of the kernel's SyncContext.
struct SampleOperands {
  static constexpr int kLogits = 0;
  static constexpr int kTemperature = 1;
  static constexpr int kTopP = 2;
  static constexpr int kMinP = 3;
  static constexpr int kRepetitionPenalty = 4;
  static constexpr int kTopK = 5;
  static constexpr int kSeed = 6;
  static constexpr int kPosition = 7;
  static constexpr int kHistory = 8;
  static constexpr int kHistoryLength = 9;
  static constexpr int kIds = 10;
  static constexpr int kCount = 11;

  static constexpr int kSlotLogits = 0;
  static constexpr int kSlotIds = 1;
  static constexpr int kSlots = 2;
};

struct SampleArgs {
  Produced<float> logits;
  Stable<float> temperature, top_p, min_p, repetition_penalty;
  Stable<std::int32_t> top_k, seed, position, history, history_length;
  Output<std::int32_t> ids;
  float* scores;  // (num_blocks, score_stride()) where a block works on a row; GPU kernels only
  std::int64_t rows, cols, max_history, tile_m, tile_n, num_blocks;

  TW_HOST_DEVICE constexpr std::int64_t tiles_n() const { return ceil_div(cols, tile_n); }
  TW_HOST_DEVICE constexpr std::int64_t num_works() const { return ceil_div(rows, tile_m); }
  /// Columns of a row of `scores`: whole 16-byte loads.
  TW_HOST_DEVICE constexpr std::int64_t score_stride() const { return ceil_div(cols, 4) * 4; }
};

}  // namespace tileweave

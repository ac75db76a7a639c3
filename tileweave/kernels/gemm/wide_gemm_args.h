// WideGemmArgs: the argument struct of the wide GEMM, the same bytes on both devices, how works cut
// x and the strips, and how a block lays out its shared memory.
#pragma once

#include <cstdint>

#include "tileweave/core/dtype.h"
#include "tileweave/kernels/gemm/packed_weights.h"
#include "tileweave/kernels/gemm/skinny_gemm_args.h"
#include "tileweave/kernels/gemm/wide_gemm.h"
#include "tileweave/sync/access.h"

namespace tileweave {

inline constexpr const char* kWideGemmKernel = "wide_gemm";

inline constexpr int kWideGroupThreads = 128;  // a warpgroup: 64 rows of W
inline constexpr int kWideThreads = 2 * kWideGroupThreads;
inline constexpr int kWideTileTokens = static_cast<int>(kWideTokens);
inline constexpr int kWideTileStrips = static_cast<int>(kWideStrips);

// The order of sums is skinny_gemm's: a slice is what one of its warps has of a part.
inline constexpr int kSliceFragments = kWarpFragments;
inline constexpr int kSlicesPerPart = kSkinnyWarps;

/// A stage of the ring: a slice of the work's strips, each in one piece, and of its rows of x in
/// two tiles of 64 columns. Rows of these are 128 bytes, whose 16-byte units change places as the
/// tensor cores' 128-byte swizzle has it.
struct WideStage {
  static constexpr int kStripBytes = kSliceFragments * static_cast<int>(kFragmentBytes);
  static constexpr int kRowBytes = 128;
  static constexpr int kTileColumns = kRowBytes / 2;
  static constexpr int kTileFragments = kTileColumns / static_cast<int>(kFragmentColumns);
  static constexpr int kTileBytes = kWideTileTokens * kRowBytes;
  static constexpr int kColumns = kSliceFragments * static_cast<int>(kFragmentColumns);
  static constexpr int kTiles = kColumns / kTileColumns;
  static constexpr int kRows = kWideTileStrips * kStripBytes;  // where x begins
  static constexpr int kBytes = kRows + kTiles * kTileBytes;
};

struct WideShared {
  static constexpr int kStages = 3;
  static constexpr int kAlignment = 1024;  // of a tile: the swizzle takes address bits 7 to 9
  static constexpr int kBarriers = kStages * WideStage::kBytes;  // three per stage
  static constexpr int kBytes = kAlignment + kBarriers + kStages * 3 * 8;
};

/// Sums of one tile of y.
inline constexpr int kWideSums = kWideTileTokens * kWideTileStrips * static_cast<int>(kStripRows);

struct WideGemmOperands {
  static constexpr int kX = 0;
  static constexpr int kW = 1;
  static constexpr int kY = 2;
  static constexpr int kSlotX = 0;
  static constexpr int kSlotResidual = 1;
  static constexpr int kSlotY = 2;
  static constexpr int kSlots = 3;
};

/// Which rows of x and which strips each work takes. Pure.
struct WideGemmSchedule {
  std::int32_t m = 0;
  std::int32_t n = 0;  // rows of W
  std::int32_t k = 0;
  std::int32_t num_strips = 0;
  std::int32_t token_tiles = 1;
  std::int32_t split_k = 1;
  bool gated = false;  // strips of gate and up by turns

  TW_HOST_DEVICE constexpr int fragments() const {
    return (k + static_cast<int>(kFragmentColumns) - 1) / static_cast<int>(kFragmentColumns);
  }
  TW_HOST_DEVICE constexpr int slices() const {
    return (fragments() + kSliceFragments - 1) / kSliceFragments;
  }
  TW_HOST_DEVICE constexpr int parts() const {
    return (slices() + kSlicesPerPart - 1) / kSlicesPerPart;
  }
  TW_HOST_DEVICE constexpr int groups() const {
    return (num_strips + kWideTileStrips - 1) / kWideTileStrips;
  }
  // Works that share strips are neighbours: these come from memory once.
  TW_HOST_DEVICE constexpr int num_results() const { return token_tiles * groups(); }
  TW_HOST_DEVICE constexpr int num_works() const { return num_results() * split_k; }
  TW_HOST_DEVICE constexpr int result_of(int work) const { return work / split_k; }
  TW_HOST_DEVICE constexpr int tile_of(int work) const { return result_of(work) % token_tiles; }
  TW_HOST_DEVICE constexpr int group_of(int work) const { return result_of(work) / token_tiles; }
  TW_HOST_DEVICE constexpr int first_part(int work) const {
    return work % split_k * parts() / split_k;
  }
  TW_HOST_DEVICE constexpr int end_part(int work) const {
    return (work % split_k + 1) * parts() / split_k;
  }
  /// Columns of y, and those of one group of strips.
  TW_HOST_DEVICE constexpr int columns() const { return gated ? n / 2 : n; }
  TW_HOST_DEVICE constexpr int group_columns() const {
    return kWideTileStrips * static_cast<int>(kStripRows) / (gated ? 2 : 1);
  }
};

struct WideGemmArgs {
  Stable<BFloat16> w;
  Produced<BFloat16> x;
  Produced<float> residual;  // null: none
  Output<void> y;
  Stable<void> bias;  // null: none
  float* partials;    // split_k > 1: [results][parts][kWideSums], as the device likes them
  WideGemmSchedule schedule;
  DType bias_type, y_type;
};

}  // namespace tileweave

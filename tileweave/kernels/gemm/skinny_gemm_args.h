// SkinnyGemmArgs: the argument struct of every skinny GEMM kernel, the same bytes on both devices,
// how works cut strips and K, and how a block lays out its shared memory.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/dtype.h"
#include "tileweave/kernels/gemm/packed_weights.h"
#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/sync/access.h"

namespace tileweave {

inline constexpr int kSkinnyWarps = 8;  // that multiply; one more loads
inline constexpr int kSkinnyConsumers = kSkinnyWarps * 32;
inline constexpr int kSkinnyThreads = kSkinnyConsumers + 32;
inline constexpr int kSkinnyColumns = 8;   // rows of x per tensor core operand
inline constexpr int kPartColumns = 1024;  // of K per sum, and per stage of the ring
inline constexpr int kPartFragments = kPartColumns / static_cast<int>(kFragmentColumns);
inline constexpr int kWarpFragments = kPartFragments / kSkinnyWarps;
inline constexpr int kStageBytes = kPartFragments * static_cast<int>(kFragmentBytes);
inline constexpr int kMostStages = 6;

/// Indices of the node's operands that are always there, and slots of the kernel's SyncContext.
struct SkinnyGemmOperands {
  static constexpr int kX = 0;
  static constexpr int kW = 1;
  static constexpr int kY = 2;
  static constexpr int kSlotX = 0;
  static constexpr int kSlotResidual = 1;
  static constexpr int kSlotY = 2;
  static constexpr int kSlots = 3;
};

/// Which strips and which of K each work takes. Pure.
struct SkinnyGemmSchedule {
  std::int32_t m = 0;
  std::int32_t n = 0;  // rows of W
  std::int32_t k = 0;
  std::int32_t num_strips = 0;
  std::int32_t strips_per_work = 1;
  std::int32_t split_k = 1;
  std::int32_t wait_k = 0;
  std::int32_t span_parts = 1;  // parts of K whose sums are added up before they join the others
  bool gated = false;           // strips of gate and up by turns

  TW_HOST_DEVICE constexpr int fragments() const { return (k + 15) / 16; }
  TW_HOST_DEVICE constexpr int parts() const { return (k + kPartColumns - 1) / kPartColumns; }
  TW_HOST_DEVICE constexpr int spans() const { return (parts() + span_parts - 1) / span_parts; }
  TW_HOST_DEVICE constexpr int groups() const {
    return (num_strips + strips_per_work - 1) / strips_per_work;
  }
  TW_HOST_DEVICE constexpr int num_works() const { return groups() * split_k; }
  TW_HOST_DEVICE constexpr int group_of(int work) const { return work / split_k; }
  TW_HOST_DEVICE constexpr int first_strip(int work) const {
    return group_of(work) * strips_per_work;
  }
  TW_HOST_DEVICE constexpr int end_strip(int work) const {
    const int end = first_strip(work) + strips_per_work;
    return end < num_strips ? end : num_strips;
  }
  TW_HOST_DEVICE constexpr int first_part(int work) const {
    return work % split_k * spans() / split_k * span_parts;
  }
  TW_HOST_DEVICE constexpr int end_part(int work) const {
    const int end = (work % split_k + 1) * spans() / split_k * span_parts;
    return end < parts() ? end : parts();
  }
  TW_HOST_DEVICE constexpr int first_k(int work) const { return first_part(work) * kPartColumns; }
  TW_HOST_DEVICE constexpr int end_k(int work) const {
    const int end = end_part(work) * kPartColumns;
    return end < k ? end : k;
  }
  /// Parts of K that one work has at most.
  TW_HOST_DEVICE constexpr int most_parts() const {
    const int most = (spans() + split_k - 1) / split_k * span_parts;
    return most < parts() ? most : parts();
  }
  /// Columns of K that one work has at most.
  TW_HOST_DEVICE constexpr int most_k() const {
    const int most = most_parts() * kPartColumns;
    return most < k ? most : k;
  }
  TW_HOST_DEVICE constexpr int slice() const { return wait_k == 0 ? k : wait_k; }

  /// Columns of y, and those of one group of strips.
  TW_HOST_DEVICE constexpr int columns() const { return gated ? n / 2 : n; }
  TW_HOST_DEVICE constexpr int group_columns() const {
    return strips_per_work * static_cast<int>(kStripRows) / (gated ? 2 : 1);
  }
  /// Row of W, in its own order, of row `r` of a strip; n or more: padding.
  TW_HOST_DEVICE constexpr int row_of(int strip, int r) const {
    if (!gated) return strip * 16 + r;
    const int row = strip / 2 * 16 + r;
    if (row >= n / 2) return n;
    return row + strip % 2 * (n / 2);
  }
};

/// Shared memory of a block, in bytes from its start.
struct SkinnyGemmShared {
  int ring = 0;
  int x = 0;         // rows of x_stride bytes; then 16 bytes of zeros
  int x_stride = 0;  //
  int zeros = 0;
  int partial = 0;  // [buffers][parts_per_meet][warps][16][columns] f32
  int norm = 0;     // norm weights as stored
  int squares = 0;  // [warps][64] f32
  int barriers = 0;
  int bytes = 0;
};

/// Columns that a warp's sums have in shared memory, where the tensor cores' have 8 or more.
TW_HOST_DEVICE constexpr int sum_columns(int m) {
  return m <= 8 ? m : m <= 16 ? 16 : m <= 32 ? 32 : 64;
}
/// How many such places there are: with two, a block's warps meet once less.
TW_HOST_DEVICE constexpr int sum_buffers(int m) {
  return m <= 16 ? 2 : 1;
}
/// Parts of K between two barriers of a block's warps.
constexpr int parts_per_meet(const SkinnyGemmSchedule& s) {
  if (s.wait_k != 0) return 1;  // slices of x come by parts
  const int fit = 8192 / (kSkinnyWarps * 16 * 4 * sum_columns(s.m));
  const int most = fit < 1 ? 1 : fit > 4 ? 4 : fit;
  return most < s.most_parts() ? most : s.most_parts();
}

/// Rows of x that the kernel for `m` of them is made for.
constexpr int skinny_tokens(std::int64_t m) {
  return m <= 1 ? 1 : m <= 8 ? 8 : m <= 16 ? 16 : m <= 32 ? 32 : 64;
}

struct SkinnyGemmArgs {
  Stable<BFloat16> w;
  Produced<void> x;
  Produced<float> residual;  // null: none
  Output<void> y;
  Stable<void> norm_weight;  // null: none
  Stable<void> bias;         // null: none
  float* partials;           // split_k > 1: [strips][spans][16][m]
  SkinnyGemmSchedule schedule;
  SkinnyGemmShared shared;
  std::int32_t stages, window, parts_per_meet;
  float eps, one_over_k;
  DType norm_type, bias_type, y_type;
};

/// "skinny_gemm.bulk.m16.norm"; `tokens` as skinny_tokens.
std::string skinny_gemm_kernel_name(SkinnyKernel kernel, int tokens, bool norm, bool split);

/// The part of add_skinny_gemm_cuda that is compiled for sm_90 alone.
void add_skinny_gemm_bulk(KernelLibrary& kernels);

}  // namespace tileweave

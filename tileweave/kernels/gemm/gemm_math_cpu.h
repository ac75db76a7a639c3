// Arithmetic of the CPU's GEMM; each function runs the best SIMD form that the machine has.
//
// The order of additions of one result is fixed: it depends on neither the shape of the call, nor
// the result's place in it, nor the other results. Sources need not be aligned, nothing is read
// beyond them. Called by gemm_cpu.cpp, blocks of one lane.
#pragma once

#include <cstdint>

#include "tileweave/core/dtype.h"
#include "tileweave/kernels/gemm/gemm_epilogue.h"

namespace tileweave::gemm_math {

/// Results are fed by this many interleaved sums (dot products), and rows of fp32 scratch are
/// padded to multiples of it.
inline constexpr std::int64_t kLanes = 16;

/// to[0, count) = from[0, count) in fp32, exact.
void widen(const float* from, std::int64_t count, float* to);
void widen(const BFloat16* from, std::int64_t count, float* to);
void widen(const Float16* from, std::int64_t count, float* to);

/// acc (rows, cols) += a (rows, depth) · b (depth, cols), ascending in depth; cols a multiple of
/// kLanes, leading dimensions cols, depth and cols.
void accumulate_panels(float* acc, const float* a, const float* b, std::int64_t rows,
                       std::int64_t cols, std::int64_t depth);

/// Rows of A times rows of B, both contiguous along the depth.
template <class TA, class TB>
struct DotProducts {
  const TA* a;
  std::int64_t a_stride;
  const TB* b;
  std::int64_t b_stride;
  std::int64_t rows, cols, depth;
  float* out;  // (rows, cols), unused with sums
  std::int64_t out_stride;
  /// null: whole products. Else (rows, cols, kLanes) sums that are advanced by this depth, to be
  /// folded later; every depth but the last a multiple of kLanes.
  float* sums = nullptr;
};

/// sum[l] takes elements k = l mod kLanes in ascending k by multiply-add; the result is the sum of
/// the lanes folded by halves.
void dot_products(const DotProducts<float, float>& p);
void dot_products(const DotProducts<float, BFloat16>& p);
void dot_products(const DotProducts<float, Float16>& p);
void dot_products(const DotProducts<BFloat16, BFloat16>& p);
/// out (rows, cols) from sums (rows, cols, kLanes).
void fold_sums(const float* sums, std::int64_t rows, std::int64_t cols, float* out,
               std::int64_t out_stride);

/// One row of an epilogue; gemm_epilogue.h says what it computes.
struct EpilogueRow {
  float* x;                     // in: sums; padded to kLanes
  float* factor = nullptr;      // null: not gated; padded
  const float* bias = nullptr;  // null: none; padded
  const float* factor_bias = nullptr;
  const float* residual = nullptr;  // null: none; `count` elements
  float* out;                       // `count` elements; may be x or the residual
  std::int64_t count;
  GemmActivation activation = GemmActivation::kNone;
};
void finish_row(const EpilogueRow& row);

}  // namespace tileweave::gemm_math

// What the CPU's RMSNorm kernels share: one padded fp32 row at a time, SIMD picked at run time.
//
// Rows are padded with zeros to `padded_row(length)` elements, so the order of additions depends on
// the row's length alone: rms_norm, rms_norm_residual and qk_norm give the same bits for the same
// row.
#pragma once

#include <cstdint>

#include "tileweave/core/coord.h"
#include "tileweave/core/dtype.h"

namespace tileweave {

constexpr std::int64_t padded_row(std::int64_t length) {
  return ceil_div(length, 16) * 16;
}

/// row = row / sqrt(mean(row^2) + eps) * weight; both hold padded_row(length) elements,
/// zeros past the end, before and after.
void rms_norm_row_cpu(float* row, const float* weight, std::int64_t length, float eps);

template <class T>
void unpack_row(const T* from, std::int64_t count, float* to) {
  for (std::int64_t j = 0; j < count; ++j) to[j] = to_float(from[j]);
}

}  // namespace tileweave

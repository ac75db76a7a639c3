#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tileweave/kernels/norm/rms_norm_row-inl.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tileweave/kernels/norm/rms_norm_row-inl.h"

#include "tileweave/kernels/norm/rms_norm_row.h"

#include <algorithm>
#include <cmath>

namespace tileweave {

HWY_EXPORT(sum_of_squares);
HWY_EXPORT(scale_row);

void rms_norm_row_cpu(float* row, const float* weight, std::int64_t length, float eps) {
  const std::int64_t padded = padded_row(length);
  const float squares = HWY_DYNAMIC_DISPATCH(sum_of_squares)(row, padded);
  const float scale = 1.0F / std::sqrt(squares / static_cast<float>(length) + eps);
  HWY_DYNAMIC_DISPATCH(scale_row)(row, weight, scale, padded);
  // 0 * scale is NaN where the row holds one (a padding row of a batch, say): it must not reach the
  // next row.
  std::fill(row + length, row + padded, 0.0F);
}

}  // namespace tileweave

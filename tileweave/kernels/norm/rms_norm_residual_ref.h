// RMSNorm of a residual sum in plain loops with fp64 arithmetic: oracle and documentation. Never
// tuned. Host only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/core/dtype.h"

namespace tileweave {

struct RmsNormResidualReference {
  std::vector<double> sum;  // (M, N)
  std::vector<double> y;    // (M, N)
};

/// Throws Error when x and delta are not M * N long, with N elements of weight. W: float, BFloat16
/// or Float16.
template <class W>
RmsNormResidualReference rms_norm_residual_reference(std::span<const float> x,
                                                     std::span<const float> delta,
                                                     std::span<const W> weight, float eps);

/// Largest |sum - exact|: one rounding.
double rms_norm_residual_sum_bound(double exact);

/// Largest |y - exact|: what rms_norm_error_bound derives for a given row, plus what the rounding
/// of the row itself adds. Each element is off by a factor 1 + u, so the root of the mean square is
/// too, and the quotient by 2 u: ((N + 1) / 2 + 10) u, relative.
double rms_norm_residual_y_bound(double exact, std::int64_t cols);

}  // namespace tileweave

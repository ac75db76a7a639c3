// RMSNorm in plain loops with fp64 arithmetic: oracle of every other form, and its documentation.
// Never tuned. Host only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/core/dtype.h"

namespace tileweave {

/// (M, N) result. Throws Error when x is not M * N long, with N elements of weight. X, W: float or
/// BFloat16; W with a float X also Float16.
template <class X, class W>
std::vector<double> rms_norm_reference(std::span<const X> x, std::span<const W> weight, float eps);

/// Largest |result - exact| of one element computed in fp32 and rounded to `result`.
///
/// With u = 2^-24: the N squares are positive, so their sum is off by at most a factor 1 + (N + 1)
/// u in any order; mean, + eps, square root and reciprocal add 4 u at most, of which the square
/// root halves all that lies below it; two products add 2 u. Together ((N + 1) / 2 + 8) u,
/// relative, with room for an approximate root that is right to 2 u.
double rms_norm_error_bound(double exact, std::int64_t cols, DType result);

}  // namespace tileweave

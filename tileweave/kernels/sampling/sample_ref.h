// Sampling in plain loops: oracle of every other form, and its documentation. Never tuned. Host
// only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/kernels/sampling/sampling_params.h"

namespace tileweave {

/// Column of the largest element; the lowest of equal ones; NaN passed over; 0 for NaNs alone.
std::int32_t argmax_reference(std::span<const float> row);

/// What is left of one row's probabilities (fp64) after all filters; 0 for tokens removed. Scores
/// are fp32 up to the temperature, as ties depend on their bits. temperature > 0, no NaN.
std::vector<double> sample_reference(std::span<const float> logits, const SamplingParams& params,
                                     std::span<const std::int32_t> history);

/// The token that `uniform` in [0, 1) draws: the first whose cumulative probability exceeds it.
std::int32_t draw_reference(std::span<const double> probabilities, double uniform);

/// How far a cumulative probability may be off when weights are computed in fp32 and added in fp64.
///
/// With u = 2^-24: the weight exp(s - m) takes u |s - m| from its rounded argument and 4 u from an
/// exponential right to 2 ulp; |s - m| is at most the spread R of the scores that are left (weights
/// below exp(-R) count for nothing). Numerator and total both carry it: 2 (R + 4) u.
double sample_error_bound(double spread);

}  // namespace tileweave

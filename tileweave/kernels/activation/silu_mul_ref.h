// SiLU-mul in plain loops with fp64 arithmetic: oracle and documentation. Never tuned. Host only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tileweave {

/// (T, N) from gate_up (T, 2 N). Throws Error when gate_up does not hold whole rows.
std::vector<double> silu_mul_reference(std::span<const float> gate_up, std::int64_t cols);

/// Largest |result - exact| of one element computed in fp32.
///
/// With u = 2^-24: exp(-g) is right to one unit in the last place (2 u, relative); 1 + exp(-g) has
/// that share of it and one rounding (3 u), the quotient and the product one more each: 5 u, and
/// one more u for products of these. Below g = -88 exp(-g) overflows, or the quotient does not fit
/// a normal number, and the result may be zero: |g exp(g)| < 2^-120 is lost.
double silu_mul_error_bound(double exact, double up);

}  // namespace tileweave

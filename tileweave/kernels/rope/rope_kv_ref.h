// rope_kv in plain loops with fp64 arithmetic: oracle and documentation. Never tuned. Host only.
//
// The angle is part of the operator: fp32(position) * inv_freq, rounded to fp32; what follows is
// exact to fp64. Results are logical rows; a padding row (slot below 0) holds zeros.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tileweave {

struct RopeKvProblem {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::span<const float> qkv = {};               // (T, (heads + 2 kv_heads) head_dim)
  std::span<const std::int32_t> positions = {};  // (T)
  std::span<const std::int32_t> slots = {};      // (T)
  std::span<const float> inv_freq = {};          // (head_dim / 2)
  float attention_factor = 1;
  std::span<const float> q_norm = {}, k_norm = {};  // (head_dim) or empty
  float eps = 1e-6F;
};

struct RopeKvReference {
  std::vector<double> q, k, v;  // (T, heads head_dim), (T, kv_heads head_dim) twice
  /// (|a| + |b|) attention_factor of the pair behind each element of q and k: scale of its error.
  std::vector<double> q_magnitudes, k_magnitudes;
};

/// Throws Error when the spans do not fit together.
RopeKvReference rope_kv_reference(const RopeKvProblem& problem);

/// Largest |result - exact| of an element of q or k computed in fp32; v is a copy.
///
/// With u = 2^-24: cosine and sine are right to one unit in the last place (u, absolutely, since
/// they are at most 1), their product with attention_factor adds u, the products with a and b u,
/// the sum of both u: 4 u (|a| + |b|) attention_factor, and one more u for products of these. With
/// QK-norm, a and b come with the relative error of a normalised row of head_dim elements,
/// ((head_dim + 1) / 2 + 8) u.
double rope_kv_error_bound(double magnitude, std::int64_t normalised_head_dim = 0);

}  // namespace tileweave

// Paged attention in plain loops with fp64 arithmetic: oracle of every other form, and its
// documentation. Never tuned. Host only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tileweave {

/// The operands as PagedAttentionTensors names them, k_step and v_step by logical row.
struct PagedAttentionProblem {
  std::int64_t heads = 1, kv_heads = 1, head_dim = 2, page_size = 1, max_pages = 1;
  float scale = 1;
  std::span<const float> q, k_step, v_step, k_past, v_past;
  std::span<const std::int32_t> positions, sequence_of_row, first_row, past, page_table;
};

/// (T, H * head_dim) result, and how far an element may be off when computed in fp32.
///
/// With u = 2^-24, D = head_dim and n keys: a score s_j is off by (D + 2) u scale Σ|q_d k_j,d|
/// (D fused products, the scaled query). A weight exp(s_j - m) takes u |s_j - m| from its rounded
/// argument and 4 u from an exponential right to 2 ulp; rescaling it to later maxima adds 6 u per
/// chunk of keys and u times the sum of the steps of m, which rise monotonically: no more than the
/// spread R of the scores. So every weight has the relative error e = exp((D + 2) u A + 2 u R +
/// (6 c + 4) u) - 1, A the largest Σ|q k| of a key and c the number of chunks. Numerator and
/// denominator each add n terms, and the same weights stand in both: |error| <= (2 e + (2 n + 4) u)
/// (1 + e) Σ w_j |v_j| to first order, w the exact softmax. Weights below fp32's range vanish,
/// which n 2^-125 max|v| covers.
struct PagedAttentionReference {
  std::vector<double> out;
  std::vector<double> bounds;
  std::vector<double> magnitudes;  // Σ w_j |v_j|
};

/// How far an element may be off when weights and results are rounded to bf16 (by r = 2^-8) and
/// products are added by tensor cores, which cut addends to the largest: four times fp32's bound.
/// The same rounded weights are summed, so a normalised one is off by (1 + r) / (1 - r) - 1.
double paged_attention_bf16_error_bound(double exact, double fp32_bound, double magnitude);

/// Throws Error when a row's position does not follow from its sequence.
PagedAttentionReference paged_attention_reference(const PagedAttentionProblem& problem);

}  // namespace tileweave

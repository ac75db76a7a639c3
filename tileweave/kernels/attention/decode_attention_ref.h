// Decode attention in plain loops with fp64 arithmetic: oracle and documentation. Never tuned. Host
// only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/core/dtype.h"

namespace tileweave {

/// The operands as DecodeAttentionTensors names them.
struct DecodeAttentionProblem {
  std::int64_t heads = 1, kv_heads = 1, head_dim = 2, page_size = 1, max_pages = 1;
  float scale = 1, attention_factor = 1, eps = 1e-6F;
  std::span<const float> qkv, inv_freq, k_past, v_past;
  std::span<const std::int32_t> positions, slots, sequence_of_row, page_table;
  std::span<const float> q_norm = {}, k_norm = {};
};

/// Results by logical row, zeros for padding, and how far an element may be off in fp32 when
/// queries, keys, weights and results are rounded to `type`.
///
/// With u = 2^-24 and r half a unit of `type` (2^-9 bf16 digits: 2^-8; f32: 0), D = head_dim, n
/// keys. An element of a turned head is off by t = (N + 5) u (|a| + |b|) of its pair, N = (D + 1) /
/// 2 + 8 with QK-norm, else 0, and by r times its size for the rounding: k's bound. A score is off
/// by the sum of these of query and, for the row's own key, key, times the other factor, plus (D +
/// 2) u Σ|q k| for the products, taken four times since tensor cores cut their addends to the
/// largest. The largest such error E, the rounding r of a weight and (4 + 2 R + 6 c) u of
/// exponentials as in paged_attention_ref.h (spread R of the scores, c passes) make e = exp(2 E) (1
/// + r)^2 - 1 + ..., the relative error of a normalised weight; sums add (2 n + 8) 4 u, the own
/// value r, the result r.
struct DecodeAttentionReference {
  std::vector<double> out, k, v;
  std::vector<double> out_bounds, k_bounds, v_bounds;
};

/// Throws Error when the spans do not fit together.
DecodeAttentionReference decode_attention_reference(const DecodeAttentionProblem& problem,
                                                    DType type);

}  // namespace tileweave

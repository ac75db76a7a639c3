// QK-norm in plain loops with fp64 arithmetic: oracle and documentation. Never tuned. Host only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/core/dtype.h"

namespace tileweave {

struct QkNormShape {
  std::int64_t heads = 0, kv_heads = 0;
};

/// (T, (heads + 2 kv_heads) head_dim) result. Throws Error when qkv does not hold whole rows or the
/// weights differ in length. W: float, BFloat16 or Float16. An element of a query or key head may
/// be off by rms_norm_error_bound(exact, head_dim, f32); value heads are copies.
template <class W>
std::vector<double> qk_norm_reference(const QkNormShape& shape, std::span<const float> qkv,
                                      std::span<const W> q_weight, std::span<const W> k_weight,
                                      float eps);

}  // namespace tileweave

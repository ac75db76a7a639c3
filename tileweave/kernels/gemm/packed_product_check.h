// What products of packed weights demand of their tensors; internal to their node functions.
#pragma once

#include <cstdint>

#include "tileweave/plan/node_check.h"

namespace tileweave {

/// Of M, N and K: a block counts with 32 bits.
inline constexpr std::int64_t kMostProductSize = std::int64_t{1} << 30;

struct PackedProduct {
  TensorId x, w, y;
  TensorId residual, bias;  // kNoTensor: none
  bool gated;
  std::int64_t most_rows;  // of x
};

/// Throws unless x, W, y, bias and residual fit together; the type of x is the caller's to check.
void check_packed_product(const NodeCheck& check, const TensorTable& tensors,
                          const PackedProduct& product);

}  // namespace tileweave

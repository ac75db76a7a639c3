// Embedding in plain loops: oracle and documentation. Host only. Nothing is rounded, so a right
// result is equal, not near.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/core/dtype.h"

namespace tileweave {

/// (T, cols) rows of `table` (V, cols); zeros for an id outside [0, V). Throws Error when the table
/// does not hold whole rows. T: float, BFloat16 or Float16.
template <class T>
std::vector<float> embedding_reference(std::span<const std::int32_t> ids, std::span<const T> table,
                                       std::int64_t cols);

}  // namespace tileweave

// Bounds of results that are rounded once more on their way to memory.
#pragma once

#include <cmath>

#include "tileweave/core/dtype.h"

namespace tileweave {

/// Largest |result - exact| of a value that is right to `bound` in fp32 and then rounded to `type`:
/// half a unit in the last of 8 significant bits for bf16, and half the smallest subnormal.
inline double rounded_bound(double exact, double bound, DType type) {
  if (type != DType::kBF16) return bound;
  return bound + std::ldexp(std::fabs(exact) + bound, -8) + std::ldexp(1.0, -134);
}

}  // namespace tileweave

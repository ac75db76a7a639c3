// Input values, and a check of results against the plain-loop reference.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/gemm_ref.h"

namespace examples {

/// `rows * cols` values in [-1, 1).
inline std::vector<float> random_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::vector<float> values(static_cast<std::size_t>(rows * cols));
  for (float& value : values) {
    value = static_cast<float>(static_cast<std::int64_t>(bits() >> 40) - (1 << 23)) /
            static_cast<float>(1 << 23);
  }
  return values;
}

/// Throws unless `c` is A · B up to what fp32 sums in any order may differ by, element by element
/// (gemm_error_bound derives it). `parts`: into how many sums K was split.
inline void check_product(const std::string& name, const tileweave::GemmShape& shape,
                          const std::vector<float>& a, const std::vector<float>& b,
                          const std::vector<float>& c, std::int64_t parts = 1) {
  const tileweave::GemmReference exact = tileweave::gemm_reference<float>(shape, a, b);
  for (std::size_t i = 0; i < c.size(); ++i) {
    const double bound = tileweave::gemm_error_bound(exact.c[i], exact.magnitudes[i], shape.k,
                                                     parts, tileweave::DType::kF32);
    if (!(std::fabs(c[i] - exact.c[i]) <= bound)) {
      throw tileweave::Error("check " + name,
                             "element " + std::to_string(i) + " to be " +
                                 std::to_string(exact.c[i]) + " within " + std::to_string(bound),
                             std::to_string(c[i]));
    }
  }
}

}  // namespace examples

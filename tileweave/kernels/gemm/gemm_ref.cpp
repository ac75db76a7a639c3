#include "tileweave/kernels/gemm/gemm_ref.h"

#include <cmath>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {

template <class T>
GemmReference gemm_reference(const GemmShape& shape, std::span<const T> a, std::span<const T> b) {
  const auto size = [](std::int64_t rows, std::int64_t cols) {
    return static_cast<std::size_t>(rows * cols);
  };
  require(a.size() == size(shape.m, shape.k), "gemm reference", "A must hold M * K elements",
          std::to_string(a.size()));
  require(b.size() == size(shape.k, shape.n), "gemm reference", "B must hold K * N elements",
          std::to_string(b.size()));
  GemmReference result;
  result.c.assign(size(shape.m, shape.n), 0.0);
  result.magnitudes.assign(size(shape.m, shape.n), 0.0);
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t k = 0; k < shape.k; ++k) {
        const std::int64_t at = shape.b_layout == BLayout::kKxN ? k * shape.n + j : j * shape.k + k;
        const double product = static_cast<double>(to_float(a[size(i, shape.k) + size(k, 1)])) *
                               static_cast<double>(to_float(b[size(at, 1)]));
        sum += product;
        magnitude += std::fabs(product);
      }
      result.c[size(i, shape.n) + size(j, 1)] = sum;
      result.magnitudes[size(i, shape.n) + size(j, 1)] = magnitude;
    }
  }
  return result;
}

template GemmReference gemm_reference<float>(const GemmShape&, std::span<const float>,
                                             std::span<const float>);
template GemmReference gemm_reference<BFloat16>(const GemmShape&, std::span<const BFloat16>,
                                                std::span<const BFloat16>);

double gemm_error_bound(double exact, double magnitude, std::int64_t k, std::int64_t parts,
                        DType result) {
  const double unit = std::ldexp(1.0, -24);
  const double roundings = static_cast<double>(k + parts) * unit;
  const double accumulated = roundings / (1 - roundings) * magnitude;
  const double unit_result = result == DType::kBF16 ? std::ldexp(1.0, -8) : 0.0;
  return accumulated + unit_result * (std::fabs(exact) + accumulated);
}

}  // namespace tileweave

#include "tileweave/kernels/gemm/gemm_ref.h"

#include <cmath>
#include <numbers>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

constexpr double kUnit = 0x1p-24;  // fp32's unit roundoff

double unit_of(DType result) {
  return result == DType::kBF16 ? 0x1p-8 : 0.0;
}

/// A value and how far a computed one may be away.
struct Approximate {
  double value = 0;
  double error = 0;

  /// After an operation that is exact but for its rounding.
  Approximate rounded(double unit = kUnit) const {
    return {value, error + unit * (std::fabs(value) + error)};
  }
};

Approximate activate(GemmActivation activation, const Approximate& x) {
  if (activation == GemmActivation::kNone) return x;
  const bool gelu = activation == GemmActivation::kGeluTanh;
  const double inner = gelu ? 2 * std::sqrt(2 / std::numbers::pi) *
                                  (x.value + 0.044715 * x.value * x.value * x.value)
                            : x.value;
  const double sigmoid = 1 / (1 + std::exp(-inner));
  const double value = x.value * sigmoid;
  const double moved = (gelu ? 1.13 : 1.10) * x.error;
  const double exponent = gelu ? 8 * std::fabs(inner) * (1 - sigmoid) : 0;
  // exp(-inner) overflows where the result is below 1e-36.
  return {value, moved + (5 + exponent) * kUnit * (std::fabs(value) + moved) + 1e-36};
}

}  // namespace

template <class TA, class TB>
GemmReference gemm_reference(const GemmShape& shape, std::span<const TA> a,
                             std::type_identity_t<std::span<const TB>> b) {
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

double gemm_error_bound(double exact, double magnitude, std::int64_t k, std::int64_t parts,
                        DType result) {
  const double roundings = static_cast<double>(k + parts) * kUnit;
  const Approximate sum{exact, roundings / (1 - roundings) * magnitude};
  return sum.rounded(unit_of(result)).error;
}

template <class TA, class TB>
GemmFusedReference gemm_fused_reference(const GemmShape& shape, const GemmEpilogueValues& epilogue,
                                        std::span<const TA> a, std::span<const TB> b,
                                        std::int64_t parts, DType result) {
  const std::int64_t n = shape.n;
  const std::int64_t columns = epilogue.gated ? 2 * n : n;
  const GemmReference sums =
      gemm_reference<TA, TB>({shape.m, columns, shape.k, shape.b_layout}, a, b);
  const auto expect_size = [](std::span<const float> values, std::int64_t count,
                              const char* expected) {
    require(values.empty() || values.size() == static_cast<std::size_t>(count), "gemm reference",
            expected, std::to_string(values.size()));
  };
  expect_size(epilogue.bias, columns, "one bias per column of B");
  expect_size(epilogue.residual, shape.m * n, "a residual of M * N elements");

  const auto with_bias = [&](std::int64_t i, std::int64_t column) {
    const auto at = static_cast<std::size_t>(i * columns + column);
    Approximate x{sums.c[at],
                  gemm_error_bound(sums.c[at], sums.magnitudes[at], shape.k, parts, DType::kF32)};
    if (epilogue.bias.empty()) return x;
    x.value += static_cast<double>(epilogue.bias[static_cast<std::size_t>(column)]);
    return x.rounded();
  };
  GemmFusedReference reference;
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      Approximate x = activate(epilogue.activation, with_bias(i, j));
      if (epilogue.gated) {
        const Approximate y = with_bias(i, n + j);
        x = Approximate{x.value * y.value, std::fabs(x.value) * y.error +
                                               std::fabs(y.value) * x.error + x.error * y.error}
                .rounded();
      }
      if (!epilogue.residual.empty()) {
        x.value += static_cast<double>(epilogue.residual[static_cast<std::size_t>(i * n + j)]);
        x = x.rounded();
      }
      x = x.rounded(unit_of(result));
      reference.c.push_back(x.value);
      reference.bounds.push_back(x.error);
    }
  }
  return reference;
}

#define TW_GEMM_REFERENCE(TA, TB)                                                            \
  template GemmReference gemm_reference<TA, TB>(const GemmShape&, std::span<const TA>,       \
                                                std::span<const TB>);                        \
  template GemmFusedReference gemm_fused_reference<TA, TB>(                                  \
      const GemmShape&, const GemmEpilogueValues&, std::span<const TA>, std::span<const TB>, \
      std::int64_t, DType)
TW_GEMM_REFERENCE(float, float);
TW_GEMM_REFERENCE(float, BFloat16);
TW_GEMM_REFERENCE(float, Float16);
TW_GEMM_REFERENCE(BFloat16, BFloat16);
#undef TW_GEMM_REFERENCE

}  // namespace tileweave

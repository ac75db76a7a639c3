#include "tileweave/kernels/norm/rms_norm_ref.h"

#include <cmath>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {

template <class X, class W>
std::vector<double> rms_norm_reference(std::span<const X> x, std::span<const W> weight, float eps) {
  const std::size_t cols = weight.size();
  require(cols > 0 && x.size() % cols == 0, "rms_norm reference", "x must hold whole rows",
          std::to_string(x.size()) + " elements for rows of " + std::to_string(cols));
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < x.size(); row += cols) {
    double squares = 0;
    for (std::size_t j = 0; j < cols; ++j) {
      const double value = to_float(x[row + j]);
      squares += value * value;
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(cols) + eps);
    for (std::size_t j = 0; j < cols; ++j) {
      y[row + j] = static_cast<double>(to_float(x[row + j])) * scale *
                   static_cast<double>(to_float(weight[j]));
    }
  }
  return y;
}

template std::vector<double> rms_norm_reference(std::span<const float>, std::span<const float>,
                                                float);
template std::vector<double> rms_norm_reference(std::span<const float>, std::span<const BFloat16>,
                                                float);
template std::vector<double> rms_norm_reference(std::span<const BFloat16>, std::span<const float>,
                                                float);
template std::vector<double> rms_norm_reference(std::span<const BFloat16>,
                                                std::span<const BFloat16>, float);

template std::vector<double> rms_norm_reference(std::span<const float>, std::span<const Float16>,
                                                float);

double rms_norm_error_bound(double exact, std::int64_t cols, DType result) {
  const double relative = (static_cast<double>(cols + 1) / 2 + 8) * std::ldexp(1.0, -24);
  const double unit_result = result == DType::kBF16 ? std::ldexp(1.0, -8) : 0.0;
  return std::fabs(exact) * (relative + unit_result * (1 + relative));
}

}  // namespace tileweave

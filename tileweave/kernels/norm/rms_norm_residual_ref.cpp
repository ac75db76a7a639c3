#include "tileweave/kernels/norm/rms_norm_residual_ref.h"

#include <cmath>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {

template <class W>
RmsNormResidualReference rms_norm_residual_reference(std::span<const float> x,
                                                     std::span<const float> delta,
                                                     std::span<const W> weight, float eps) {
  const std::size_t cols = weight.size();
  require(cols > 0 && x.size() % cols == 0, "rms_norm_residual reference", "x must hold whole rows",
          std::to_string(x.size()) + " elements for rows of " + std::to_string(cols));
  require(delta.size() == x.size(), "rms_norm_residual reference", "delta must be as long as x",
          std::to_string(delta.size()) + " and " + std::to_string(x.size()) + " elements");
  RmsNormResidualReference result{std::vector<double>(x.size()), std::vector<double>(x.size())};
  for (std::size_t row = 0; row < x.size(); row += cols) {
    double squares = 0;
    for (std::size_t j = row; j < row + cols; ++j) {
      const double sum = static_cast<double>(x[j]) + static_cast<double>(delta[j]);
      result.sum[j] = sum;
      squares += sum * sum;
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(cols) + eps);
    for (std::size_t j = 0; j < cols; ++j) {
      result.y[row + j] = result.sum[row + j] * scale * static_cast<double>(to_float(weight[j]));
    }
  }
  return result;
}

template RmsNormResidualReference rms_norm_residual_reference(std::span<const float>,
                                                              std::span<const float>,
                                                              std::span<const float>, float);
template RmsNormResidualReference rms_norm_residual_reference(std::span<const float>,
                                                              std::span<const float>,
                                                              std::span<const BFloat16>, float);
template RmsNormResidualReference rms_norm_residual_reference(std::span<const float>,
                                                              std::span<const float>,
                                                              std::span<const Float16>, float);

double rms_norm_residual_sum_bound(double exact) {
  return std::fabs(exact) * std::ldexp(1.0, -24);
}

double rms_norm_residual_y_bound(double exact, std::int64_t cols) {
  return std::fabs(exact) * (static_cast<double>(cols + 1) / 2 + 10) * std::ldexp(1.0, -24);
}

}  // namespace tileweave

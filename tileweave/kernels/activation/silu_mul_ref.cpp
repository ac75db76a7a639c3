#include "tileweave/kernels/activation/silu_mul_ref.h"

#include <cmath>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {

std::vector<double> silu_mul_reference(std::span<const float> gate_up, std::int64_t cols) {
  const auto n = static_cast<std::size_t>(cols);
  require(cols > 0 && gate_up.size() % (2 * n) == 0, "silu_mul reference",
          "gate_up must hold whole rows",
          std::to_string(gate_up.size()) + " elements for rows of " + std::to_string(2 * cols));
  std::vector<double> out;
  for (std::size_t row = 0; row < gate_up.size(); row += 2 * n) {
    for (std::size_t j = row; j < row + n; ++j) {
      const double gate = gate_up[j];
      out.push_back(gate / (1 + std::exp(-gate)) * static_cast<double>(gate_up[j + n]));
    }
  }
  return out;
}

double silu_mul_error_bound(double exact, double up) {
  return 6 * std::ldexp(1.0, -24) * std::fabs(exact) + std::ldexp(1.0, -120) * (std::fabs(up) + 1);
}

}  // namespace tileweave

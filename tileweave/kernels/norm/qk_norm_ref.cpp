#include "tileweave/kernels/norm/qk_norm_ref.h"

#include <cmath>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {

template <class W>
std::vector<double> qk_norm_reference(const QkNormShape& shape, std::span<const float> qkv,
                                      std::span<const W> q_weight, std::span<const W> k_weight,
                                      float eps) {
  const std::size_t dim = q_weight.size();
  require(dim > 0 && k_weight.size() == dim, "qk_norm reference", "weights of one length",
          std::to_string(dim) + " and " + std::to_string(k_weight.size()));
  const auto heads = static_cast<std::size_t>(shape.heads);
  const auto kv_heads = static_cast<std::size_t>(shape.kv_heads);
  const std::size_t cols = (heads + 2 * kv_heads) * dim;
  require(cols > 0 && qkv.size() % cols == 0, "qk_norm reference", "qkv must hold whole rows",
          std::to_string(qkv.size()) + " elements for rows of " + std::to_string(cols));
  std::vector<double> out(qkv.begin(), qkv.end());
  for (std::size_t first = 0; first < qkv.size(); first += dim) {
    const std::size_t head = first % cols / dim;
    if (head >= heads + kv_heads) continue;
    const std::span<const W> weight = head < heads ? q_weight : k_weight;
    double squares = 0;
    for (std::size_t j = 0; j < dim; ++j) squares += out[first + j] * out[first + j];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(dim) + eps);
    for (std::size_t j = 0; j < dim; ++j) {
      out[first + j] *= scale * static_cast<double>(to_float(weight[j]));
    }
  }
  return out;
}

template std::vector<double> qk_norm_reference(const QkNormShape&, std::span<const float>,
                                               std::span<const float>, std::span<const float>,
                                               float);
template std::vector<double> qk_norm_reference(const QkNormShape&, std::span<const float>,
                                               std::span<const BFloat16>, std::span<const BFloat16>,
                                               float);
template std::vector<double> qk_norm_reference(const QkNormShape&, std::span<const float>,
                                               std::span<const Float16>, std::span<const Float16>,
                                               float);

}  // namespace tileweave

#include "tileweave/kernels/embedding/embedding_ref.h"

#include <string>

#include "tileweave/core/error.h"

namespace tileweave {

template <class T>
std::vector<float> embedding_reference(std::span<const std::int32_t> ids, std::span<const T> table,
                                       std::int64_t cols) {
  const auto n = static_cast<std::size_t>(cols);
  require(cols > 0 && table.size() % n == 0, "embedding reference", "table must hold whole rows",
          std::to_string(table.size()) + " elements for rows of " + std::to_string(cols));
  std::vector<float> out;
  for (const std::int32_t id : ids) {
    const bool inside = id >= 0 && static_cast<std::size_t>(id) < table.size() / n;
    for (std::size_t j = 0; j < n; ++j) {
      out.push_back(inside ? to_float(table[static_cast<std::size_t>(id) * n + j]) : 0.0F);
    }
  }
  return out;
}

template std::vector<float> embedding_reference(std::span<const std::int32_t>,
                                                std::span<const float>, std::int64_t);
template std::vector<float> embedding_reference(std::span<const std::int32_t>,
                                                std::span<const BFloat16>, std::int64_t);
template std::vector<float> embedding_reference(std::span<const std::int32_t>,
                                                std::span<const Float16>, std::int64_t);

}  // namespace tileweave

#include "tileweave/kernels/gemm/packed_product_check.h"

#include <string>

#include "tileweave/core/format.h"

namespace tileweave {

void check_packed_product(const NodeCheck& check, const TensorTable& tensors,
                          const PackedProduct& product) {
  const TensorSpec& x = tensors[product.x].spec;
  const TensorSpec& w = tensors[product.w].spec;
  const TensorSpec& y = tensors[product.y].spec;
  for (const TensorSpec* t : {&x, &w, &y}) check.matrix(*t);
  const std::int64_t m = x.shape[0];
  const std::int64_t n = w.shape[0];
  const std::int64_t k = w.shape[1];
  const std::string most =
      product.most_rows == kMostProductSize ? "2^30" : std::to_string(product.most_rows);
  check.need(m >= 1 && m <= product.most_rows, "`" + x.name + "` must have 1 to " + most + " rows",
             std::to_string(m));
  check.need(n >= 1 && n <= kMostProductSize && k >= 1 && k <= kMostProductSize,
             "`" + w.name + "` must have 1 to 2^30 rows and columns", to_string(w.shape));
  check.need(!product.gated || n % 2 == 0,
             "`" + w.name + "` must have an even number of rows: gate, then up", std::to_string(n));
  check.shape(x, {m, k});
  check.shape(y, {m, product.gated ? n / 2 : n});
  check.type(w, {DType::kBF16});
  check.constant(w);
  check.type(y, {DType::kF32, DType::kBF16});
  check.result(y);
  if (product.bias != kNoTensor) {
    const TensorSpec& bias = tensors[product.bias].spec;
    check.shape(bias, {n});
    check.constant(bias);
    check.type(bias, {DType::kF32, DType::kBF16});
  }
  if (product.residual != kNoTensor) {
    const TensorSpec& residual = tensors[product.residual].spec;
    check.shape(residual, y.shape);
    check.type(residual, {DType::kF32});
  }
}

}  // namespace tileweave

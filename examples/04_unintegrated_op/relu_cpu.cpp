#include <algorithm>

#include "examples/04_unintegrated_op/relu.h"

namespace examples {

void relu_cpu(const float* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = std::max(from[i], 0.0F);
}

}  // namespace examples

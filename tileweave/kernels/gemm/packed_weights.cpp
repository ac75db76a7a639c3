#include "tileweave/kernels/gemm/packed_weights.h"

#include <algorithm>

namespace tileweave {

void pack_weights(const BFloat16* w, const PackedLayout& layout, BFloat16* to) {
  std::fill_n(to, layout.bytes() / static_cast<std::int64_t>(sizeof(BFloat16)), BFloat16{});
  for (std::int64_t row = 0; row < layout.n; ++row) {
    for (std::int64_t column = 0; column < layout.k; ++column) {
      to[layout.index_of(row, column)] = w[row * layout.k + column];
    }
  }
}

}  // namespace tileweave

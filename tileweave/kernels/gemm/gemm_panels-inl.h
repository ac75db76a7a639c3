// The inner loop of the CPU's GEMM, compiled once per SIMD target of this machine family.
//
// Included several times by Highway's foreach_target (see gemm_panels_cpu.cpp); no include guard.
// acc (rows, cols) += a (rows, depth) · b (depth, cols), all fp32, cols a multiple of 16. Every
// element of acc takes its products in ascending depth, whatever the tile around it.
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tileweave {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

struct GemmPanels {
  float* acc;
  const float* a;
  const float* b;
  std::int64_t rows, cols, depth;  // leading dimensions: acc and b cols, a depth
};

/// Four rows by one vector of columns.
template <class D>
HWY_INLINE void accumulate_four_rows(D d, const GemmPanels& p, std::int64_t row, std::int64_t col) {
  float* const acc = p.acc + row * p.cols + col;
  const float* const a = p.a + row * p.depth;
  const float* b = p.b + col;
  auto sum0 = hn::LoadU(d, acc);
  auto sum1 = hn::LoadU(d, acc + p.cols);
  auto sum2 = hn::LoadU(d, acc + 2 * p.cols);
  auto sum3 = hn::LoadU(d, acc + 3 * p.cols);
  for (std::int64_t k = 0; k < p.depth; ++k, b += p.cols) {
    const auto vb = hn::LoadU(d, b);
    sum0 = hn::MulAdd(hn::Set(d, a[k]), vb, sum0);
    sum1 = hn::MulAdd(hn::Set(d, a[p.depth + k]), vb, sum1);
    sum2 = hn::MulAdd(hn::Set(d, a[2 * p.depth + k]), vb, sum2);
    sum3 = hn::MulAdd(hn::Set(d, a[3 * p.depth + k]), vb, sum3);
  }
  hn::StoreU(sum0, d, acc);
  hn::StoreU(sum1, d, acc + p.cols);
  hn::StoreU(sum2, d, acc + 2 * p.cols);
  hn::StoreU(sum3, d, acc + 3 * p.cols);
}

template <class D>
HWY_INLINE void accumulate_one_row(D d, const GemmPanels& p, std::int64_t row, std::int64_t col) {
  float* const acc = p.acc + row * p.cols + col;
  const float* const a = p.a + row * p.depth;
  const float* b = p.b + col;
  auto sum = hn::LoadU(d, acc);
  for (std::int64_t k = 0; k < p.depth; ++k, b += p.cols) {
    sum = hn::MulAdd(hn::Set(d, a[k]), hn::LoadU(d, b), sum);
  }
  hn::StoreU(sum, d, acc);
}

void accumulate_all_panels(float* acc, const float* a, const float* b, std::int64_t rows,
                           std::int64_t cols, std::int64_t depth) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const GemmPanels panels{acc, a, b, rows, cols, depth};
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    for (std::int64_t col = 0; col < cols; col += lanes) {
      accumulate_four_rows(d, panels, row, col);
    }
  }
  for (; row < rows; ++row) {
    for (std::int64_t col = 0; col < cols; col += lanes) accumulate_one_row(d, panels, row, col);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tileweave
HWY_AFTER_NAMESPACE();

// The epilogue of one row, compiled once per SIMD target of this machine family.
//
// Included several times by Highway's foreach_target (see gemm_epilogue_cpu.cpp); no include guard.
// Every step is a rounding of its own, lane by lane, so an element's bits depend on its place in
// no way.
#include <cstdint>
#include <cstring>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "tileweave/kernels/gemm/gemm_math_cpu.h"

HWY_BEFORE_NAMESPACE();
namespace tileweave {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using gemm_math::EpilogueRow;

/// x / (1 + exp(-inner)); exp(-inner) overflows to infinity within its valid range.
template <class D, class V>
HWY_INLINE V times_sigmoid(D d, V x, V inner) {
  const V largest = hn::Set(d, 100.0F);
  return hn::Div(x, hn::Add(hn::Set(d, 1.0F), hn::Exp(d, hn::Min(hn::Neg(inner), largest))));
}

template <GemmActivation kActivation, class D, class V>
HWY_INLINE V activate(D d, V x) {
  if constexpr (kActivation == GemmActivation::kSilu) {
    return times_sigmoid(d, x, x);
  } else if constexpr (kActivation == GemmActivation::kGeluTanh) {
    const V cube = hn::Mul(hn::Mul(x, x), x);
    const V sum = hn::Add(x, hn::Mul(hn::Set(d, 0.044715F), cube));
    return times_sigmoid(d, x, hn::Mul(hn::Set(d, 1.5957691216057308F), sum));  // 2 sqrt(2 / pi)
  } else {
    return x;
  }
}

/// `residual` and `out` are rows of `kVector` elements from the same place on as `at`.
template <GemmActivation kActivation, class D>
HWY_INLINE void finish_vector(D d, const EpilogueRow& row, std::int64_t at, const float* residual,
                              float* out) {
  auto x = hn::LoadU(d, row.x + at);
  if (row.bias != nullptr) x = hn::Add(x, hn::LoadU(d, row.bias + at));
  x = activate<kActivation>(d, x);
  if (row.factor != nullptr) {
    auto factor = hn::LoadU(d, row.factor + at);
    if (row.factor_bias != nullptr) factor = hn::Add(factor, hn::LoadU(d, row.factor_bias + at));
    x = hn::Mul(x, factor);
  }
  if (residual != nullptr) x = hn::Add(x, hn::LoadU(d, residual));
  hn::StoreU(x, d, out);
}

template <GemmActivation kActivation>
HWY_INLINE void finish_with(const EpilogueRow& row) {
  const hn::CappedTag<float, gemm_math::kLanes> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t at = 0;
  for (; at + lanes <= row.count; at += lanes) {
    finish_vector<kActivation>(d, row, at, row.residual == nullptr ? nullptr : row.residual + at,
                               row.out + at);
  }
  if (at == row.count) return;
  float residual[gemm_math::kLanes] = {};
  float out[gemm_math::kLanes];
  const auto left = static_cast<std::size_t>(row.count - at) * sizeof(float);
  if (row.residual != nullptr) std::memcpy(residual, row.residual + at, left);
  finish_vector<kActivation>(d, row, at, row.residual == nullptr ? nullptr : residual, out);
  std::memcpy(row.out + at, out, left);
}

void finish_one_row(const EpilogueRow& row) {
  switch (row.activation) {
    case GemmActivation::kNone:
      return finish_with<GemmActivation::kNone>(row);
    case GemmActivation::kSilu:
      return finish_with<GemmActivation::kSilu>(row);
    case GemmActivation::kGeluTanh:
      return finish_with<GemmActivation::kGeluTanh>(row);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tileweave
HWY_AFTER_NAMESPACE();

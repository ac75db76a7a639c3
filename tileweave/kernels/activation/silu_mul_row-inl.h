// The inner loop of the CPU's SiLU-mul, compiled once per SIMD target of this machine family.
//
// Included several times by Highway's foreach_target (see silu_mul_cpu.cpp); no include guard.
#include <cstdint>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tileweave {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// out = gate / (1 + exp(-gate)) * up for j in [begin, end), a multiple of the lanes of D.
template <class D>
HWY_INLINE void silu_mul_lanes(D d, const float* gate, const float* up, float* out,
                               std::int64_t begin, std::int64_t end) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.0F);
  // Exp is defined up to 104; there it is infinite, and the quotient zero.
  const auto largest = hn::Set(d, 104.0F);
  for (std::int64_t j = begin; j < end; j += lanes) {
    const auto x = hn::LoadU(d, gate + j);
    const auto denominator = hn::Add(one, hn::Exp(d, hn::Min(hn::Neg(x), largest)));
    hn::StoreU(hn::Mul(hn::Div(x, denominator), hn::LoadU(d, up + j)), d, out + j);
  }
}

void silu_mul_row(const float* gate, const float* up, float* out, std::int64_t count) {
  const hn::CappedTag<float, 16> d;
  const hn::CappedTag<float, 1> one;  // the same roundings for what is left over
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = count / lanes * lanes;
  silu_mul_lanes(d, gate, up, out, 0, whole);
  silu_mul_lanes(one, gate, up, out, whole, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace tileweave
HWY_AFTER_NAMESPACE();

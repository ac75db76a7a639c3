// The inner loops of the CPU's rope_kv, compiled once per SIMD target of this machine family.
//
// Included several times by Highway's foreach_target (see rope_kv_cpu.cpp); no include guard.
#include <cmath>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tileweave {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Turns the pairs (i, i + half) of one head for i in [begin, end), a multiple of the lanes of D.
template <class D>
HWY_INLINE void rotate_pairs(D d, const float* from, const float* cosines, const float* sines,
                             float* to, std::int64_t half, std::int64_t begin, std::int64_t end) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = begin; i < end; i += lanes) {
    const auto a = hn::LoadU(d, from + i);
    const auto b = hn::LoadU(d, from + half + i);
    const auto c = hn::LoadU(d, cosines + i);
    const auto s = hn::LoadU(d, sines + i);
    hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, to + i);
    hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, to + half + i);
  }
}

/// to = one head of `2 * half` elements, turned. `to` and `from` do not overlap.
void rotate_head(const float* from, const float* cosines, const float* sines, float* to,
                 std::int64_t half) {
  const hn::CappedTag<float, 16> d;
  const hn::CappedTag<float, 1> one;  // the same roundings for what is left over
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = half / lanes * lanes;
  rotate_pairs(d, from, cosines, sines, to, half, 0, whole);
  rotate_pairs(one, from, cosines, sines, to, half, whole, half);
}

/// head = head / sqrt(mean(head^2) + eps) * weight; both padded with zeros to `padded`, a multiple
/// of 16, elements. The order of additions is that of the norm operators.
void normalise_head(float* head, const float* weight, std::int64_t length, std::int64_t padded,
                    float eps) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (std::int64_t j = 0; j < padded; j += lanes) {
    const auto value = hn::LoadU(d, head + j);
    sum = hn::MulAdd(value, value, sum);
  }
  const float squares = hn::GetLane(hn::SumOfLanes(d, sum));
  const float scale = 1.0F / std::sqrt(squares / static_cast<float>(length) + eps);
  const auto factor = hn::Set(d, scale);
  for (std::int64_t j = 0; j < padded; j += lanes) {
    const auto value = hn::Mul(hn::LoadU(d, head + j), factor);
    hn::StoreU(hn::Mul(value, hn::LoadU(d, weight + j)), d, head + j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tileweave
HWY_AFTER_NAMESPACE();

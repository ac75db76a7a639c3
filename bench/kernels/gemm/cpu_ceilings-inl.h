// The loops behind cpu_ceilings.h, compiled once per SIMD target; no include guard.
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tileweave::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

std::uint32_t read_once(const std::byte* from, std::size_t bytes) {
  const hn::CappedTag<std::uint32_t, 16> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto* words = reinterpret_cast<const std::uint32_t*>(from);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  auto sum2 = hn::Zero(d);
  auto sum3 = hn::Zero(d);
  for (std::size_t i = 0; i < bytes / 4; i += 4 * lanes) {
    sum0 = hn::Add(sum0, hn::LoadU(d, words + i));
    sum1 = hn::Add(sum1, hn::LoadU(d, words + i + lanes));
    sum2 = hn::Add(sum2, hn::LoadU(d, words + i + 2 * lanes));
    sum3 = hn::Add(sum3, hn::LoadU(d, words + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
}

std::int64_t multiply_add_all(std::int64_t rounds, float* result) {
  const hn::CappedTag<float, 16> d;
  const auto factor = hn::Set(d, 0.5F);
  const auto term = hn::Set(d, 1.0F);
  auto s0 = hn::Set(d, 0.1F), s1 = hn::Set(d, 0.2F), s2 = hn::Set(d, 0.3F), s3 = hn::Set(d, 0.4F);
  auto s4 = hn::Set(d, 0.5F), s5 = hn::Set(d, 0.6F), s6 = hn::Set(d, 0.7F), s7 = hn::Set(d, 0.8F);
  auto s8 = hn::Set(d, 0.9F), s9 = hn::Set(d, 1.1F);
  for (std::int64_t i = 0; i < rounds; ++i) {
    s0 = hn::MulAdd(s0, factor, term);
    s1 = hn::MulAdd(s1, factor, term);
    s2 = hn::MulAdd(s2, factor, term);
    s3 = hn::MulAdd(s3, factor, term);
    s4 = hn::MulAdd(s4, factor, term);
    s5 = hn::MulAdd(s5, factor, term);
    s6 = hn::MulAdd(s6, factor, term);
    s7 = hn::MulAdd(s7, factor, term);
    s8 = hn::MulAdd(s8, factor, term);
    s9 = hn::MulAdd(s9, factor, term);
  }
  const auto low = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
  const auto high = hn::Add(hn::Add(s4, s5), hn::Add(s6, s7));
  *result = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(low, high), hn::Add(s8, s9))));
  return rounds * 10 * 2 * static_cast<std::int64_t>(hn::Lanes(d));
}

}  // namespace HWY_NAMESPACE
}  // namespace tileweave::bench
HWY_AFTER_NAMESPACE();

// The inner loops of the CPU's RMSNorm kernels, compiled once per SIMD target of this machine
// family.
//
// Included several times by Highway's foreach_target (see rms_norm_row.cpp); no include guard.
// `count` is a multiple of 16 and rows are padded with zeros, so the order of additions depends on
// the row's length alone.
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tileweave {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

float sum_of_squares(const float* row, std::int64_t count) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (std::int64_t j = 0; j < count; j += lanes) {
    const auto value = hn::LoadU(d, row + j);
    sum = hn::MulAdd(value, value, sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

/// row = (row * scale) * weight.
void scale_row(float* row, const float* weight, float scale, std::int64_t count) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  for (std::int64_t j = 0; j < count; j += lanes) {
    const auto value = hn::Mul(hn::LoadU(d, row + j), factor);
    hn::StoreU(hn::Mul(value, hn::LoadU(d, weight + j)), d, row + j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tileweave
HWY_AFTER_NAMESPACE();

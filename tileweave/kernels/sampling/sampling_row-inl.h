// Passes over one row of logits, compiled once per SIMD target of this machine family.
//
// Included several times by Highway's foreach_target (see sampling_row.cpp); no include guard. Rows
// have any length and alignment; what a pass computes for an element does not depend on the others.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
// After highway.h; has its own guard per target.
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tileweave {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using RowTag = hn::CappedTag<float, 16>;

/// Largest element, NaN passed over; -inf for nothing else.
float largest(const float* row, std::int64_t count) {
  const RowTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto most = lowest;
  std::int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    const auto value = hn::LoadU(d, row + j);
    most = hn::Max(most, hn::IfThenElse(hn::IsNaN(value), lowest, value));
  }
  float result = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; j < count; ++j) result = row[j] > result ? row[j] : result;
  return result;
}

/// to = from with -inf for NaN.
void copy_numbers(const float* from, std::int64_t count, float* to) {
  const RowTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const float lowest = -std::numeric_limits<float>::infinity();
  std::int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    const auto value = hn::LoadU(d, from + j);
    hn::StoreU(hn::IfThenElse(hn::IsNaN(value), hn::Set(d, lowest), value), d, to + j);
  }
  for (; j < count; ++j) to[j] = from[j] == from[j] ? from[j] : lowest;
}

/// row = row / divisor.
void divide(float* row, std::int64_t count, float divisor) {
  const RowTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    hn::StoreU(hn::Div(hn::LoadU(d, row + j), hn::Set(d, divisor)), d, row + j);
  }
  for (; j < count; ++j) row[j] /= divisor;
}

/// to = exp(row - highest), exactly 1 where they are equal (both infinite included).
void weigh(const float* row, std::int64_t count, float highest, float* to) {
  const RowTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto top = hn::Set(d, highest);
  const auto weight = [&](auto value) HWY_ATTR {
    return hn::IfThenElse(hn::Eq(value, top), hn::Set(d, 1.0F), hn::Exp(d, hn::Sub(value, top)));
  };
  std::int64_t j = 0;
  for (; j + lanes <= count; j += lanes) hn::StoreU(weight(hn::LoadU(d, row + j)), d, to + j);
  if (j == count) return;
  // Through the same vector code, so that an element's weight does not depend on its place.
  HWY_ALIGN float rest[16];
  std::fill_n(rest, 16, highest);
  std::copy_n(row + j, count - j, rest);
  hn::Store(weight(hn::Load(d, rest)), d, rest);
  std::copy_n(rest, count - j, to + j);
}

}  // namespace HWY_NAMESPACE
}  // namespace tileweave
HWY_AFTER_NAMESPACE();

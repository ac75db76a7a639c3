// Coord: up to five signed 64-bit numbers, one per tensor axis: a shape, a tile size, a tile
// coordinate or an element position, depending on who reads it. Box: a half-open axis-aligned
// region of elements.
//
// A tensor has at most four axes, plus an optional leading *rank* axis for peer memory (paper
// section 2.2). Pure values, constexpr on host and device. A coordinate with fewer axes than the
// grid it indexes stands for zeros on the missing trailing axes, so a row tile of a matrix is {m}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "tileweave/core/error.h"
#include "tileweave/core/target.h"

namespace tileweave {

inline constexpr int kMaxAxes = 5;

[[noreturn]] inline void refuse_axes(std::size_t got) {
  throw Error("make a coordinate", "at most " + std::to_string(kMaxAxes) + " axes",
              std::to_string(got));
}

struct Coord {
  std::int64_t v[kMaxAxes] = {};
  int num_axes = 0;

  constexpr Coord() = default;
  /// Throws Error for more than kMaxAxes values; does not compile in a constant expression.
  TW_HOST_DEVICE constexpr Coord(std::initializer_list<std::int64_t> values) {
    TW_ON_HOST(if (values.size() > kMaxAxes) refuse_axes(values.size());)
    for (const std::int64_t value : values) {
      if (num_axes < kMaxAxes) v[num_axes++] = value;
    }
  }
  /// `num_axes` axes, every one equal to `value`.
  TW_HOST_DEVICE static constexpr Coord filled(int num_axes, std::int64_t value) {
    Coord c;
    c.num_axes = num_axes;
    for (int a = 0; a < num_axes; ++a) c.v[a] = value;
    return c;
  }

  TW_HOST_DEVICE constexpr std::int64_t operator[](int axis) const { return v[axis]; }
  TW_HOST_DEVICE constexpr std::int64_t& operator[](int axis) { return v[axis]; }

  /// Product of all axes; 1 for no axes.
  TW_HOST_DEVICE constexpr std::int64_t volume() const {
    std::int64_t product = 1;
    for (int a = 0; a < num_axes; ++a) product *= v[a];
    return product;
  }

  TW_HOST_DEVICE friend constexpr bool operator==(const Coord& a, const Coord& b) {
    if (a.num_axes != b.num_axes) return false;
    for (int i = 0; i < a.num_axes; ++i) {
      if (a.v[i] != b.v[i]) return false;
    }
    return true;
  }
};

using Shape = Coord;

/// Half-open region [begin, begin + size) per axis.
struct Box {
  Coord begin;
  Coord size;

  TW_HOST_DEVICE constexpr bool empty() const {
    for (int a = 0; a < size.num_axes; ++a) {
      if (size.v[a] <= 0) return true;
    }
    return false;
  }
  TW_HOST_DEVICE constexpr std::int64_t volume() const { return empty() ? 0 : size.volume(); }
  TW_HOST_DEVICE friend constexpr bool operator==(const Box& a, const Box& b) {
    return a.begin == b.begin && a.size == b.size;
  }
};

TW_HOST_DEVICE constexpr std::int64_t min64(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
TW_HOST_DEVICE constexpr std::int64_t max64(std::int64_t a, std::int64_t b) {
  return a < b ? b : a;
}
/// Ceiling division of non-negative `a` by positive `b`; does not overflow near 2^63.
TW_HOST_DEVICE constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// Elements in both boxes (same number of axes; neither end may pass 2^63).
TW_HOST_DEVICE constexpr Box intersect(const Box& a, const Box& b) {
  Box r;
  r.begin.num_axes = r.size.num_axes = a.begin.num_axes;
  for (int i = 0; i < a.begin.num_axes; ++i) {
    const std::int64_t lo = max64(a.begin.v[i], b.begin.v[i]);
    const std::int64_t hi = min64(a.begin.v[i] + a.size.v[i], b.begin.v[i] + b.size.v[i]);
    r.begin.v[i] = lo;
    r.size.v[i] = hi > lo ? hi - lo : 0;
  }
  return r;
}

TW_HOST_DEVICE constexpr bool contains(const Box& outer, const Box& inner) {
  if (inner.empty()) return true;
  for (int a = 0; a < inner.begin.num_axes; ++a) {
    // As a subtraction: a nonsensical inner box may end past 2^63.
    const std::int64_t end = outer.begin.v[a] + outer.size.v[a];
    if (inner.begin.v[a] < outer.begin.v[a] || inner.begin.v[a] > end ||
        inner.size.v[a] > end - inner.begin.v[a]) {
      return false;
    }
  }
  return true;
}

}  // namespace tileweave

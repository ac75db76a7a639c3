// Tile algebra: how a tensor is cut into tiles and which tiles of one cut meet which of another.
//
// A *tiling* cuts a tensor into boxes of one size per axis, the last one ragged; a *kernel tiling*
// is the cut a kernel's blocks use on one operand, a *data tiling* the cut on which kernels
// synchronise (paper section 2.1). Both are plain grids over the same elements, so everything two
// kernels must agree on follows from the two grids (`tiles_meeting`, `calc_extent`,
// `calc_target`), indivisible sizes included. Pure functions, constexpr, host and device.
// Linear index: row-major over tile coordinates, rank axis first.
#pragma once

#include <cstdint>

#include "tileweave/core/coord.h"

namespace tileweave {

/// First tile and number of tiles per axis of a grid: what a box of elements meets.
struct TileSpan {
  Coord first;
  Coord extent;

  TW_HOST_DEVICE constexpr std::int64_t count() const { return extent.volume(); }
  TW_HOST_DEVICE friend constexpr bool operator==(const TileSpan& a, const TileSpan& b) {
    return a.first == b.first && a.extent == b.extent;
  }
};

struct Tiling {
  Shape shape;  // elements per axis
  Coord tile;   // elements of one tile per axis

  /// Axis `a` is cut into ceil(shape[a] / tile[a]) tiles.
  TW_HOST_DEVICE constexpr std::int64_t num_tiles(int axis) const {
    return ceil_div(shape[axis], tile[axis]);
  }
  TW_HOST_DEVICE constexpr Coord grid() const {
    Coord g;
    g.num_axes = shape.num_axes;
    for (int a = 0; a < shape.num_axes; ++a) g.v[a] = num_tiles(a);
    return g;
  }
  TW_HOST_DEVICE constexpr std::int64_t count() const { return grid().volume(); }

  /// Elements of tile `t`; the last tile of an axis is cut at the edge of the tensor.
  TW_HOST_DEVICE constexpr Box box(const Coord& t) const {
    Box b;
    b.begin.num_axes = b.size.num_axes = shape.num_axes;
    for (int a = 0; a < shape.num_axes; ++a) {
      const std::int64_t at = a < t.num_axes ? t.v[a] : 0;
      b.begin.v[a] = at * tile.v[a];
      b.size.v[a] = min64(tile.v[a], shape.v[a] - b.begin.v[a]);
    }
    return b;
  }
  TW_HOST_DEVICE constexpr std::int64_t linear(const Coord& t) const {
    std::int64_t index = 0;
    for (int a = 0; a < shape.num_axes; ++a) {
      index = index * num_tiles(a) + (a < t.num_axes ? t.v[a] : 0);
    }
    return index;
  }
  TW_HOST_DEVICE constexpr Coord coord(std::int64_t index) const {
    Coord t;
    t.num_axes = shape.num_axes;
    for (int a = shape.num_axes - 1; a >= 0; --a) {
      const std::int64_t n = num_tiles(a);
      t.v[a] = index % n;
      index /= n;
    }
    return t;
  }
  TW_HOST_DEVICE constexpr bool inside(const Coord& t) const {
    for (int a = 0; a < t.num_axes; ++a) {
      if (t.v[a] < 0 || (a < shape.num_axes ? t.v[a] >= num_tiles(a) : t.v[a] != 0)) return false;
    }
    return true;
  }
  TW_HOST_DEVICE friend constexpr bool operator==(const Tiling& a, const Tiling& b) {
    return a.shape == b.shape && a.tile == b.tile;
  }
};

/// What is wrong with `tiling`, or nullptr when it is usable: 1 to kMaxAxes axes, shape and tile of
/// the same rank, every size at least 1, and at most 2^62 elements.
TW_HOST_DEVICE constexpr const char* invalid(const Tiling& tiling) {
  if (tiling.shape.num_axes < 1) return "a tensor needs at least one axis";
  if (tiling.shape.num_axes != tiling.tile.num_axes) {
    return "shape and tile must have the same number of axes";
  }
  constexpr std::int64_t kLimit = std::int64_t{1} << 62;
  std::int64_t elements = 1;
  for (int a = 0; a < tiling.shape.num_axes; ++a) {
    if (tiling.shape.v[a] < 1) return "every axis of the shape must be at least 1";
    if (tiling.tile.v[a] < 1) return "every axis of the tile must be at least 1";
    if (tiling.shape.v[a] > kLimit / elements) return "the tensor has more than 2^62 elements";
    if (tiling.tile.v[a] > kLimit) return "a tile is longer than 2^62";
    elements *= tiling.shape.v[a];
  }
  return nullptr;
}

/// Tiles of `grid` that meet the elements of `box` (a box inside the tensor, not empty).
TW_HOST_DEVICE constexpr TileSpan tiles_meeting(const Tiling& grid, const Box& box) {
  TileSpan span;
  span.first.num_axes = span.extent.num_axes = grid.shape.num_axes;
  for (int a = 0; a < grid.shape.num_axes; ++a) {
    const std::int64_t first = box.begin.v[a] / grid.tile.v[a];
    const std::int64_t last = (box.begin.v[a] + box.size.v[a] - 1) / grid.tile.v[a];
    span.first.v[a] = first;
    span.extent.v[a] = last - first + 1;
  }
  return span;
}

/// The paper's utility functions: callables over tile coordinates made from two grids on one
/// tensor. `calc_extent(d, s, k)(kernel_tile)` is the number of data tiles per axis that the kernel
/// tile meets; `calc_target(d, s, k)(data_tile)` the number of kernel tiles that meet the data
/// tile.
struct ExtentFunction {
  Tiling data;
  Tiling kernel;
  TW_HOST_DEVICE constexpr Coord operator()(const Coord& kernel_tile) const {
    return tiles_meeting(data, kernel.box(kernel_tile)).extent;
  }
};
struct TargetFunction {
  Tiling data;
  Tiling kernel;
  TW_HOST_DEVICE constexpr std::int64_t operator()(const Coord& data_tile) const {
    return tiles_meeting(kernel, data.box(data_tile)).count();
  }
};
TW_HOST_DEVICE constexpr ExtentFunction calc_extent(const Coord& dtile, const Shape& shape,
                                                    const Coord& ktile) {
  return {{shape, dtile}, {shape, ktile}};
}
TW_HOST_DEVICE constexpr TargetFunction calc_target(const Coord& dtile, const Shape& shape,
                                                    const Coord& ktile) {
  return {{shape, dtile}, {shape, ktile}};
}

}  // namespace tileweave

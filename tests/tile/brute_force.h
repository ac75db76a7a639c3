// Oracles of the tile algebra that look at every element, or at every pair of tiles.
//
// They share no arithmetic with tileweave/tile: tiles are painted onto elements by counting along
// an axis, never by division, and large extents are compared as 128-bit intervals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tileweave/core/coord.h"
#include "tileweave/tile/tiling.h"

namespace tileweave::testing {

/// Calls `visit(position)` for every element of `box` in row-major order.
template <class Visit>
void for_each_element(const Box& box, Visit visit) {
  Coord at = box.begin;
  for (;;) {
    visit(static_cast<const Coord&>(at));
    int axis = box.size.num_axes - 1;
    for (; axis >= 0; --axis) {
      if (++at[axis] < box.begin[axis] + box.size[axis]) break;
      at[axis] = box.begin[axis];
    }
    if (axis < 0) return;
  }
}

inline Box whole(const Shape& shape) {
  Box box;
  box.begin = Coord::filled(shape.num_axes, 0);
  box.size = shape;
  return box;
}

/// Tile number along one axis for every position of the axis, by counting.
inline std::vector<std::int64_t> paint_axis(std::int64_t extent, std::int64_t tile) {
  std::vector<std::int64_t> tiles;
  std::int64_t current = 0;
  std::int64_t used = 0;
  for (std::int64_t i = 0; i < extent; ++i) {
    if (used == tile) {
      ++current;
      used = 0;
    }
    ++used;
    tiles.push_back(current);
  }
  return tiles;
}

/// A tiling painted onto its tensor.
class Painted {
 public:
  explicit Painted(const Tiling& tiling) {
    grid_.num_axes = tiling.shape.num_axes;
    for (int a = 0; a < tiling.shape.num_axes; ++a) {
      axes_.push_back(paint_axis(tiling.shape[a], tiling.tile[a]));
      grid_[a] = axes_.back().back() + 1;
    }
  }
  const Coord& grid() const { return grid_; }
  /// Row-major number of the tile that owns the element.
  std::int64_t tile_at(const Coord& element) const {
    std::int64_t index = 0;
    for (int a = 0; a < grid_.num_axes; ++a) {
      index = index * grid_[a] +
              axes_[static_cast<std::size_t>(a)][static_cast<std::size_t>(element[a])];
    }
    return index;
  }

 private:
  std::vector<std::vector<std::int64_t>> axes_;
  Coord grid_;
};

/// Which kernel tiles meet which data tiles: both directions, each list ascending.
struct Relation {
  std::vector<std::vector<std::int64_t>> data_of_kernel;
  std::vector<std::vector<std::int64_t>> kernels_of_data;

  void add(std::int64_t kernel, std::int64_t data) {
    data_of_kernel[static_cast<std::size_t>(kernel)].push_back(data);
    kernels_of_data[static_cast<std::size_t>(data)].push_back(kernel);
  }
  void finish() {
    for (auto* side : {&data_of_kernel, &kernels_of_data}) {
      for (auto& list : *side) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
      }
    }
  }
};

inline Relation relation_by_elements(const Tiling& kernel, const Tiling& data) {
  const Painted kernels(kernel);
  const Painted datas(data);
  Relation relation;
  relation.data_of_kernel.resize(static_cast<std::size_t>(kernels.grid().volume()));
  relation.kernels_of_data.resize(static_cast<std::size_t>(datas.grid().volume()));
  for_each_element(whole(kernel.shape), [&](const Coord& element) {
    relation.add(kernels.tile_at(element), datas.tile_at(element));
  });
  relation.finish();
  return relation;
}

/// The same for any boxes: element by element against both lists.
inline Relation relation_of_boxes(const std::vector<Box>& kernel, const std::vector<Box>& data) {
  Relation relation;
  relation.data_of_kernel.resize(kernel.size());
  relation.kernels_of_data.resize(data.size());
  const auto holds = [](const Box& box, const Coord& element) {
    for (int a = 0; a < element.num_axes; ++a) {
      if (element[a] < box.begin[a] || element[a] >= box.begin[a] + box.size[a]) return false;
    }
    return true;
  };
  for (std::size_t k = 0; k < kernel.size(); ++k) {
    for_each_element(kernel[k], [&](const Coord& element) {
      for (std::size_t d = 0; d < data.size(); ++d) {
        if (holds(data[d], element)) {
          relation.add(static_cast<std::int64_t>(k), static_cast<std::int64_t>(d));
        }
      }
    });
  }
  relation.finish();
  return relation;
}

/// Tiles of one axis as 128-bit intervals, by adding up.
inline std::vector<std::pair<__int128, __int128>> intervals(std::int64_t extent,
                                                            std::int64_t tile) {
  std::vector<std::pair<__int128, __int128>> list;
  for (__int128 at = 0; at < extent; at += tile) {
    list.emplace_back(at, std::min<__int128>(at + tile, extent));
  }
  return list;
}

/// For extents too long to enumerate: every pair of tiles, interval against interval.
inline Relation relation_by_intervals(const Tiling& kernel, const Tiling& data) {
  const int num_axes = kernel.shape.num_axes;
  std::vector<std::vector<std::pair<__int128, __int128>>> kernels;
  std::vector<std::vector<std::pair<__int128, __int128>>> datas;
  Shape kernel_grid;
  Shape data_grid;
  kernel_grid.num_axes = data_grid.num_axes = num_axes;
  for (int a = 0; a < num_axes; ++a) {
    kernels.push_back(intervals(kernel.shape[a], kernel.tile[a]));
    datas.push_back(intervals(data.shape[a], data.tile[a]));
    kernel_grid[a] = static_cast<std::int64_t>(kernels.back().size());
    data_grid[a] = static_cast<std::int64_t>(datas.back().size());
  }
  Relation relation;
  relation.data_of_kernel.resize(static_cast<std::size_t>(kernel_grid.volume()));
  relation.kernels_of_data.resize(static_cast<std::size_t>(data_grid.volume()));
  std::int64_t k = 0;
  for_each_element(whole(kernel_grid), [&](const Coord& kernel_tile) {
    std::int64_t d = 0;
    for_each_element(whole(data_grid), [&](const Coord& data_tile) {
      bool meets = true;
      for (int a = 0; a < num_axes; ++a) {
        const auto& ours =
            kernels[static_cast<std::size_t>(a)][static_cast<std::size_t>(kernel_tile[a])];
        const auto& theirs =
            datas[static_cast<std::size_t>(a)][static_cast<std::size_t>(data_tile[a])];
        meets = meets && ours.first < theirs.second && theirs.first < ours.second;
      }
      if (meets) relation.add(k, d);
      ++d;
    });
    ++k;
  });
  relation.finish();
  return relation;
}

}  // namespace tileweave::testing

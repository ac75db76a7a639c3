// One tile of a matrix as six numbers: what `Tiling::coord` and `Tiling::box` say, for kernels.
//
// A Coord is an array, and one that is indexed by a loop lives in a GPU's local memory, which the
// first acquire evicts from the L1 cache; these numbers live in registers. Pure, host and device.
#pragma once

#include <cstdint>

#include "tileweave/tile/tiling.h"

namespace tileweave {

struct MatrixTile {
  std::int64_t m, n;  // coordinate in the grid
  std::int64_t first_row, rows;
  std::int64_t first_col, cols;
};

/// Tiles of a tiling of two axes.
TW_HOST_DEVICE constexpr std::int64_t matrix_tiles(const Tiling& tiling) {
  return tiling.num_tiles(0) * tiling.num_tiles(1);
}

/// Tile `work`, in row-major order, of a tiling of two axes.
TW_HOST_DEVICE constexpr MatrixTile matrix_tile(const Tiling& tiling, std::int64_t work) {
  const std::int64_t across = tiling.num_tiles(1);
  MatrixTile t{};
  t.m = work / across;
  t.n = work - t.m * across;
  t.first_row = t.m * tiling.tile[0];
  t.first_col = t.n * tiling.tile[1];
  t.rows = min64(tiling.tile[0], tiling.shape[0] - t.first_row);
  t.cols = min64(tiling.tile[1], tiling.shape[1] - t.first_col);
  return t;
}

}  // namespace tileweave

// TileFinder: which tiles of a set meet a box, by closed form for grids and by an index for tables.
//
// The contract check asks this for every kernel tile of every operand, so it appends to a vector of
// the caller instead of calling back, and a table is searched along its first axis only where boxes
// can meet. Immutable value; tiles come in ascending index order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tileweave/tile/tile_set.h"

namespace tileweave {

class TileFinder {
 public:
  TileFinder() = default;
  explicit TileFinder(TileSet tiles);

  const TileSet& tiles() const { return tiles_; }
  /// Replaces `found` by the tiles that meet `box`, which lies inside the tensor.
  void meeting(const Box& box, std::vector<std::int64_t>& found) const;

 private:
  TileSet tiles_;
  std::vector<std::pair<std::int64_t, std::int64_t>> by_begin_;  // table: (first element, tile)
  std::int64_t longest_ = 0;                                     // table: longest box on axis 0
};

}  // namespace tileweave

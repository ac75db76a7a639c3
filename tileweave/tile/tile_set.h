// TileSet: a cut of a tensor that the host can enumerate, as a plain grid or as a table of boxes.
//
// Used for both data tilings and kernel tilings. A *data* tile set partitions the tensor (checked
// when it is made); a *kernel* tile set may leave holes or overlap (a halo read), which verify()
// judges by what the operand does with it. Tiles are named by linear index. Immutable; copies are
// cheap (tables are shared). Throws Error for an invalid tiling.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tileweave/core/coord.h"
#include "tileweave/tile/tiling.h"

namespace tileweave {

class TileSet {
 public:
  TileSet() = default;

  /// A grid of boxes of one size. Throws when `tiling` is invalid.
  static TileSet plain(const Tiling& tiling);
  /// A partition of `shape` by a table of non-empty, disjoint boxes that cover it: a data tiling.
  static TileSet table(const Shape& shape, std::vector<Box> boxes);
  /// Any non-empty boxes inside `shape`, overlaps and holes allowed: a kernel tiling only.
  static TileSet loose_table(const Shape& shape, std::vector<Box> boxes);

  bool empty() const { return shape_.num_axes == 0; }
  bool is_plain() const { return !empty() && !boxes_; }
  /// The grid of a plain set. Precondition: is_plain().
  const Tiling& tiling() const { return tiling_; }
  const Shape& shape() const { return shape_; }
  std::int64_t count() const;
  Box box(std::int64_t index) const;
  /// Coordinate of a tile: grid coordinate when plain, {index} for a table.
  Coord coord(std::int64_t index) const;
  std::int64_t linear(const Coord& coord) const;
  /// Coordinates run below this: the grid when plain, {count} for a table.
  Coord grid() const;

  /// Calls `visit(index)` for every tile that meets `box`, in ascending index order.
  void for_each_meeting(const Box& box, const std::function<void(std::int64_t)>& visit) const;

  /// "64x128 tiles of 1000x512", "table of 7 boxes over 1000x512".
  std::string describe() const;

  friend bool operator==(const TileSet& a, const TileSet& b);

 private:
  Shape shape_;
  Tiling tiling_;
  std::shared_ptr<const std::vector<Box>> boxes_;
};

}  // namespace tileweave

#include "tileweave/tile/tile_map.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"

namespace tileweave {
namespace {

constexpr std::int64_t kMaxTableIndex = std::numeric_limits<std::int32_t>::max();

std::vector<std::int64_t> expand(const TileSpan& span, const Tiling& grid) {
  std::vector<std::int64_t> tiles;
  const Tiling offsets{span.extent, Coord::filled(span.extent.num_axes, 1)};
  for (std::int64_t i = 0, n = span.count(); i < n; ++i) {
    Coord at = offsets.coord(i);
    for (int a = 0; a < at.num_axes; ++a) at[a] += span.first[a];
    tiles.push_back(grid.linear(at));
  }
  return tiles;
}

void check_tiling(const Tiling& tiling) {
  if (const char* what = invalid(tiling)) {
    throw Error("tile map", what,
                "shape " + to_string(tiling.shape) + " by tile " + to_string(tiling.tile));
  }
}

void check_same_shape(const Shape& kernel, const Shape& data) {
  require(kernel == data, "tile map", "kernel and data tiles must cut the same shape");
}

void check_table_size(const TileSet& data) {
  require(data.count() <= kMaxTableIndex, "tile map table", "fewer than 2^31 data tiles",
          std::to_string(data.count()));
}

}  // namespace

TileMap TileMap::plain(const Tiling& kernel, const Tiling& data) {
  check_tiling(kernel);
  check_tiling(data);
  check_same_shape(kernel.shape, data.shape);
  TileMap map;
  map.kernel_ = kernel;
  map.data_ = data;
  map.kernel_grid_ = kernel.grid();
  return map;
}

TileMap TileMap::table(Coord kernel_grid, std::vector<std::int32_t> offsets,
                       std::vector<std::int32_t> tiles) {
  const auto num_kernel_tiles = static_cast<std::size_t>(kernel_grid.volume());
  require(offsets.size() == num_kernel_tiles + 1, "tile map table",
          "one offset per kernel tile and one more", std::to_string(offsets.size()));
  require(offsets.front() == 0 && static_cast<std::size_t>(offsets.back()) == tiles.size() &&
              std::is_sorted(offsets.begin(), offsets.end()),
          "tile map table", "offsets must rise from 0 to the number of entries");
  TileMap map;
  map.form_ = MapForm::kTable;
  map.kernel_grid_ = kernel_grid;
  map.table_ = std::make_shared<const Table>(Table{std::move(offsets), std::move(tiles)});
  return map;
}

TileMap TileMap::table_from(const Coord& kernel_grid,
                            const std::function<std::vector<std::int32_t>(const Coord&)>& list) {
  std::vector<std::int32_t> offsets = {0};
  std::vector<std::int32_t> tiles;
  const Tiling grid{kernel_grid, Coord::filled(kernel_grid.num_axes, 1)};
  for (std::int64_t k = 0, n = kernel_grid.volume(); k < n; ++k) {
    const std::vector<std::int32_t> of_k = list(grid.coord(k));
    tiles.insert(tiles.end(), of_k.begin(), of_k.end());
    require(static_cast<std::int64_t>(tiles.size()) <= kMaxTableIndex, "tile map table",
            "fewer than 2^31 entries");
    offsets.push_back(static_cast<std::int32_t>(tiles.size()));
  }
  return table(kernel_grid, std::move(offsets), std::move(tiles));
}

TileMap TileMap::functor(Coord kernel_grid, Tiling data, Functor host_twin) {
  check_tiling(data);
  TileMap map;
  map.form_ = MapForm::kFunctor;
  map.kernel_grid_ = kernel_grid;
  map.data_ = data;
  map.functor_ = std::move(host_twin);
  return map;
}

TileMap TileMap::derive(const TileSet& kernel, const TileSet& data) {
  check_same_shape(kernel.shape(), data.shape());
  if (kernel.is_plain() && data.is_plain()) return plain(kernel.tiling(), data.tiling());
  check_table_size(data);
  return table_from(kernel.grid(), [&](const Coord& k) {
    std::vector<std::int32_t> tiles;
    data.for_each_meeting(kernel.box(kernel.linear(k)),
                          [&](std::int64_t t) { tiles.push_back(static_cast<std::int32_t>(t)); });
    return tiles;
  });
}

std::vector<std::int64_t> TileMap::tiles_of(const Coord& kernel_tile,
                                            const LaunchArgs& args) const {
  switch (form_) {
    case MapForm::kPlain:
      return expand(tiles_meeting(data_, kernel_.box(kernel_tile)), data_);
    case MapForm::kFunctor:
      return expand(functor_(kernel_tile, args), data_);
    case MapForm::kTable:
      break;
  }
  const Tiling grid{kernel_grid_, Coord::filled(kernel_grid_.num_axes, 1)};
  const auto k = static_cast<std::size_t>(grid.linear(kernel_tile));
  const auto begin = table_->tiles.begin();
  return {begin + table_->offsets[k], begin + table_->offsets[k + 1]};
}

TargetMap TargetMap::constant(std::int64_t arrivals) {
  require(arrivals >= 0, "target", "a number of arrivals that is not negative",
          std::to_string(arrivals));
  TargetMap map;
  map.constant_ = arrivals;
  return map;
}

TargetMap TargetMap::plain(const Tiling& kernel, const Tiling& data) {
  check_tiling(kernel);
  check_tiling(data);
  check_same_shape(kernel.shape, data.shape);
  TargetMap map;
  map.kernel_ = kernel;
  map.data_ = data;
  return map;
}

TargetMap TargetMap::table(std::vector<std::int64_t> arrivals) {
  TargetMap map;
  map.form_ = MapForm::kTable;
  map.table_ = std::move(arrivals);
  return map;
}

TargetMap TargetMap::functor(Functor host_twin) {
  TargetMap map;
  map.form_ = MapForm::kFunctor;
  map.functor_ = std::move(host_twin);
  return map;
}

std::int64_t TargetMap::of(const TileSet& data, std::int64_t data_tile,
                           const LaunchArgs& args) const {
  switch (form_) {
    case MapForm::kPlain:
      if (constant_ >= 0) return constant_;
      return tiles_meeting(kernel_, data_.box(data_.coord(data_tile))).count();
    case MapForm::kTable:
      require(data_tile >= 0 && data_tile < static_cast<std::int64_t>(table_.size()),
              "target table", "one entry per data tile", std::to_string(table_.size()));
      return table_[static_cast<std::size_t>(data_tile)];
    case MapForm::kFunctor:
      break;
  }
  return functor_(data.coord(data_tile), args);
}

TileMap compose_with_view(const TileMap& map, const TileSet& view, const TileSet& base,
                          const LaunchArgs& args) {
  check_same_shape(view.shape(), base.shape());
  check_table_size(base);
  return TileMap::table_from(map.kernel_grid(), [&](const Coord& k) {
    std::vector<std::int32_t> tiles;
    for (const std::int64_t v : map.tiles_of(k, args)) {
      require(v >= 0 && v < view.count(), "re-tiled view", "a map to tiles of the view",
              "tile " + std::to_string(v) + " of " + std::to_string(view.count()));
      base.for_each_meeting(view.box(v),
                            [&](std::int64_t t) { tiles.push_back(static_cast<std::int32_t>(t)); });
    }
    std::sort(tiles.begin(), tiles.end());
    tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
    return tiles;
  });
}

}  // namespace tileweave

// TileMap: kernel tile -> data tiles it meets. TargetMap: data tile -> arrivals that complete it.
//
// Each has three forms (paper section 2.2): *plain* (closed form from two grids), *table* (read
// from device memory) and *functor* (compiled into a user's kernel; the host keeps a twin). Launch
// arguments reach every functor. All forms can be enumerated on the host, so verify() sees every
// edge. Derived forms need no typing: `derive` picks plain for two grids and a table otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tileweave/tile/tile_set.h"

namespace tileweave {

/// Numbers given at launch that functor forms may read (paper section 2.2, "additional arguments").
struct LaunchArgs {
  static constexpr int kCount = 4;
  std::int64_t v[kCount] = {};
};

enum class MapForm : std::int32_t { kPlain, kTable, kFunctor };

class TileMap {
 public:
  using Functor = std::function<TileSpan(const Coord& kernel_tile, const LaunchArgs& args)>;

  /// Closed form from two grids over the same shape.
  static TileMap plain(const Tiling& kernel, const Tiling& data);
  /// Kernel tile k meets data tiles `tiles[offsets[k] .. offsets[k + 1])`.
  static TileMap table(Coord kernel_grid, std::vector<std::int32_t> offsets,
                       std::vector<std::int32_t> tiles);
  /// Table filled from a host callable that lists the data tiles of each kernel tile.
  static TileMap table_from(const Coord& kernel_grid,
                            const std::function<std::vector<std::int32_t>(const Coord&)>& list);
  /// First data tile and extent per axis of the data grid, computed in the kernel; `host_twin` must
  /// compute the same.
  static TileMap functor(Coord kernel_grid, Tiling data, Functor host_twin);
  /// From any two tile sets over one shape: plain where both are plain, else a table.
  static TileMap derive(const TileSet& kernel, const TileSet& data);

  MapForm form() const { return form_; }
  const Coord& kernel_grid() const { return kernel_grid_; }
  /// Grids of a plain map (`data` also of a functor map).
  const Tiling& kernel() const { return kernel_; }
  const Tiling& data() const { return data_; }
  /// CSR arrays of a table map.
  const std::vector<std::int32_t>& offsets() const { return table_->offsets; }
  const std::vector<std::int32_t>& tiles() const { return table_->tiles; }

  /// Linear data tiles of one kernel tile, in the order in which the kernel visits them. Indices
  /// are as the map says them: a wrong map may name tiles that do not exist.
  std::vector<std::int64_t> tiles_of(const Coord& kernel_tile, const LaunchArgs& args = {}) const;

 private:
  struct Table {
    std::vector<std::int32_t> offsets;
    std::vector<std::int32_t> tiles;
  };
  MapForm form_ = MapForm::kPlain;
  Coord kernel_grid_;
  Tiling kernel_;
  Tiling data_;
  std::shared_ptr<const Table> table_;
  Functor functor_;
};

class TargetMap {
 public:
  using Functor = std::function<std::int64_t(const Coord& data_tile, const LaunchArgs& args)>;

  /// The same number of arrivals for every data tile (the paper's integer in_target).
  static TargetMap constant(std::int64_t arrivals);
  /// Closed form: kernel tiles of `kernel` that meet the data tile.
  static TargetMap plain(const Tiling& kernel, const Tiling& data);
  /// One number per linear data tile, kept in device memory.
  static TargetMap table(std::vector<std::int64_t> arrivals);
  static TargetMap functor(Functor host_twin);

  MapForm form() const { return form_; }
  bool is_constant() const { return form_ == MapForm::kPlain && constant_ >= 0; }
  /// Precondition: is_constant().
  std::int64_t constant_value() const { return constant_; }
  std::int64_t of(const TileSet& data, std::int64_t data_tile, const LaunchArgs& args = {}) const;

 private:
  MapForm form_ = MapForm::kPlain;
  std::int64_t constant_ = -1;
  Tiling kernel_;
  Tiling data_;
  std::vector<std::int64_t> table_;
  Functor functor_;
};

/// Re-tiled view: a map written for the tiles of `view` becomes a map to the tiles of `base` that
/// those meet. Waiting through it waits for all of them; a view owns no semaphores.
TileMap compose_with_view(const TileMap& map, const TileSet& view, const TileSet& base,
                          const LaunchArgs& args = {});

}  // namespace tileweave

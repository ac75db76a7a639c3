// From a kernel tile to the semaphore words it meets, inside a kernel.
//
// `ContextMaps` reads the plain and table forms out of an OperandSync; `FunctorMaps<F>` compiles a
// user's functor in. Both offer `walk` (the data tiles of a kernel tile, addressable one by one so
// that lanes can take one each) and `target`. Pure index arithmetic, host and device; 32-bit unless
// the operand is marked wide.
#pragma once

#include <cstdint>

#include "tileweave/core/target.h"
#include "tileweave/sync/context.h"
#include "tileweave/tile/tiling.h"

namespace tileweave {

/// The data tiles that one kernel tile meets: the one at `first`, a list, or a span of a grid.
struct TileWalk {
  std::int64_t count = 0;
  std::int64_t first = 0;                 // linear index of the first tile of a span
  const std::int32_t* entries = nullptr;  // table form
  std::int32_t num_axes = 0;
  std::int64_t extent[kMaxAxes] = {};  // tiles of the span per axis
  std::int64_t stride[kMaxAxes] = {};  // of the linear index

  TW_HOST_DEVICE std::int64_t at(std::int64_t i) const {
    if (entries != nullptr) return entries[i];
    std::int64_t index = first;
    TW_ROLLED_LOOP
    for (int a = num_axes - 1; a >= 0 && i > 0; --a) {
      index += i % extent[a] * stride[a];
      i /= extent[a];
    }
    return index;
  }
};

namespace detail {

// Loops stay rolled: unrolled, their divisions are tens of kilobytes of code to fetch.

/// Walk of a span of a grid; Int is the width of the arithmetic.
template <class Int>
TW_HOST_DEVICE TileWalk walk_plain(const OperandTiles& op, const Coord& ktile) {
  TileWalk walk;
  walk.count = 1;
  walk.num_axes = op.num_axes;
  std::int64_t stride = 1;
  TW_ROLLED_LOOP
  for (int a = op.num_axes - 1; a >= 0; --a) {
    const Int shape = static_cast<Int>(op.shape[a]);
    const Int dtile = static_cast<Int>(op.dtile[a]);
    const Int size = static_cast<Int>(op.ktile[a]);
    const Int begin = static_cast<Int>(a < ktile.num_axes ? ktile.v[a] : 0) * size;
    const Int end = shape - begin < size ? shape : begin + size;
    const Int first = begin / dtile;
    walk.extent[a] = static_cast<std::int64_t>((end - 1) / dtile - first + 1);
    walk.stride[a] = stride;
    walk.first += static_cast<std::int64_t>(first) * stride;
    walk.count *= walk.extent[a];
    stride *= static_cast<std::int64_t>((shape - 1) / dtile + 1);
  }
  return walk;
}

/// Kernel tiles of the producer grid that meet one data tile.
template <class Int>
TW_HOST_DEVICE std::uint32_t target_plain(const OperandTiles& op, std::int64_t data_tile) {
  Int rest = static_cast<Int>(data_tile);
  Int arrivals = 1;
  TW_ROLLED_LOOP
  for (int a = op.num_axes - 1; a >= 0; --a) {
    const Int shape = static_cast<Int>(op.shape[a]);
    const Int dtile = static_cast<Int>(op.dtile[a]);
    const Int ktile = static_cast<Int>(op.producer_ktile[a]);
    const Int grid = (shape - 1) / dtile + 1;
    const Int begin = rest % grid * dtile;
    rest /= grid;
    const Int end = shape - begin < dtile ? shape : begin + dtile;
    arrivals *= (end - 1) / ktile - begin / ktile + 1;
  }
  return static_cast<std::uint32_t>(arrivals);
}

/// Linear index of a kernel tile in its grid (a table map's own, else from shape and kernel tile).
TW_NO_INLINE TW_HOST_DEVICE inline std::int64_t kernel_tile_index(const OperandTiles& op,
                                                                  const Coord ktile) {
  std::int64_t index = 0;
  TW_ROLLED_LOOP
  for (int a = 0; a < op.num_axes; ++a) {
    index = index * ceil_div(op.shape[a], op.ktile[a]) + (a < ktile.num_axes ? ktile.v[a] : 0);
  }
  return index;
}

}  // namespace detail

/// Which operands of a kernel are one data tile with a constant target, at device scope.
enum class PlainWords : std::uint8_t { kNone, kSome, kAll };

struct ContextMaps {
  /// Operands marked kSingleTile, which need no map and have a constant target, are looked for.
  static constexpr PlainWords kPlain = PlainWords::kSome;

  TW_HOST_DEVICE static TileWalk walk(const OperandSync& op, const OperandTiles& tiles,
                                      int /*operand*/, const Coord& ktile,
                                      const LaunchArgs& /*args*/) {
    TileWalk walk;
    if ((op.flags & OperandSync::kSingleTile) != 0) {
      walk.count = 1;
    } else if (tiles.map_offsets != nullptr) {
      const std::int64_t k = detail::kernel_tile_index(tiles, ktile);
      walk.entries = tiles.map_tiles + tiles.map_offsets[k];
      walk.count = tiles.map_offsets[k + 1] - tiles.map_offsets[k];
    } else {
      walk = (op.flags & OperandSync::kWide) != 0 ? detail::walk_plain<std::uint64_t>(tiles, ktile)
                                                  : detail::walk_plain<std::uint32_t>(tiles, ktile);
    }
    return walk;
  }

  TW_HOST_DEVICE static std::uint32_t target(const OperandSync& op, const OperandTiles& tiles,
                                             int /*operand*/, std::int64_t data_tile,
                                             const LaunchArgs& /*args*/) {
    if (tiles.targets != nullptr) return tiles.targets[data_tile];
    if ((op.flags & OperandSync::kClosedFormTarget) == 0) return op.target;
    return (op.flags & OperandSync::kWide) != 0
               ? detail::target_plain<std::uint64_t>(tiles, data_tile)
               : detail::target_plain<std::uint32_t>(tiles, data_tile);
  }
};

/// For kernels that count every fraction of a microsecond: promises that every tiled operand is one
/// data tile, so that no code for several is compiled in. Such a kernel is added to the library
/// with TileSupport::kSingleTile, and a plan that gives it more is refused.
struct SingleTileMaps {
  static constexpr PlainWords kPlain = PlainWords::kAll;
  TW_HOST_DEVICE static TileWalk walk(const OperandSync&, const OperandTiles&, int, const Coord&,
                                      const LaunchArgs&) {
    return {};
  }
  TW_HOST_DEVICE static std::uint32_t target(const OperandSync& op, const OperandTiles&, int,
                                             std::int64_t, const LaunchArgs&) {
    return op.target;
  }
};

/// Maps compiled into the kernel. F has `static TileSpan map(int operand, const Coord& kernel_tile,
/// const LaunchArgs&)` and `static std::uint32_t target(int operand, const Coord& data_tile, const
/// LaunchArgs&)`, both host and device; the host uses the same functions as twins.
template <class F>
struct FunctorMaps {
  static constexpr PlainWords kPlain = PlainWords::kNone;

  TW_HOST_DEVICE static TileWalk walk(const OperandSync&, const OperandTiles& op, int operand,
                                      const Coord& ktile, const LaunchArgs& args) {
    const TileSpan span = F::map(operand, ktile, args);
    TileWalk walk;
    walk.count = 1;
    walk.num_axes = op.num_axes;
    std::int64_t stride = 1;
    TW_ROLLED_LOOP
    for (int a = op.num_axes - 1; a >= 0; --a) {
      walk.extent[a] = a < span.extent.num_axes ? span.extent.v[a] : 1;
      walk.stride[a] = stride;
      walk.first += (a < span.first.num_axes ? span.first.v[a] : 0) * stride;
      walk.count *= walk.extent[a];
      stride *= ceil_div(op.shape[a], op.dtile[a]);
    }
    return walk;
  }
  TW_HOST_DEVICE static std::uint32_t target(const OperandSync&, const OperandTiles& op,
                                             int operand, std::int64_t data_tile,
                                             const LaunchArgs& args) {
    Coord tile;
    tile.num_axes = op.num_axes;
    for (int a = op.num_axes - 1; a >= 0; --a) {
      const std::int64_t n = ceil_div(op.shape[a], op.dtile[a]);
      tile.v[a] = data_tile % n;
      data_tile /= n;
    }
    return F::target(operand, tile, args);
  }
};

}  // namespace tileweave

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

/// The data tiles that one kernel tile meets.
struct TileWalk {
  std::int64_t count = 0;
  std::int64_t first = 0;                 // linear index when count == 1 or for a table
  const std::int32_t* entries = nullptr;  // table form
  TileSpan span;                          // several tiles of a grid
  Coord grid;

  TW_HOST_DEVICE std::int64_t at(std::int64_t i) const {
    if (entries != nullptr) return entries[i];
    if (count == 1) return first;
    std::int64_t index = 0;
    std::int64_t scale = 1;
    for (int a = span.first.num_axes - 1; a >= 0; --a) {
      index += (span.first.v[a] + i % span.extent.v[a]) * scale;
      i /= span.extent.v[a];
      scale *= grid.v[a];
    }
    return index;
  }
};

namespace detail {

/// Walk of a span of a grid; Int is the width of the arithmetic.
template <class Int>
TW_HOST_DEVICE TileWalk walk_plain(const OperandSync& op, const Coord& ktile) {
  TileWalk walk;
  walk.count = 1;
  walk.span.first.num_axes = walk.span.extent.num_axes = walk.grid.num_axes = op.num_axes;
  for (int a = 0; a < op.num_axes; ++a) {
    const Int shape = static_cast<Int>(op.shape[a]);
    const Int dtile = static_cast<Int>(op.dtile[a]);
    const Int size = static_cast<Int>(op.ktile[a]);
    const Int begin = static_cast<Int>(a < ktile.num_axes ? ktile.v[a] : 0) * size;
    const Int end = shape - begin < size ? shape : begin + size;
    const Int first = begin / dtile;
    const Int extent = (end - 1) / dtile - first + 1;
    const Int grid = (shape - 1) / dtile + 1;
    walk.span.first.v[a] = static_cast<std::int64_t>(first);
    walk.span.extent.v[a] = static_cast<std::int64_t>(extent);
    walk.grid.v[a] = static_cast<std::int64_t>(grid);
    walk.count *= static_cast<std::int64_t>(extent);
    walk.first = walk.first * walk.grid.v[a] + walk.span.first.v[a];
  }
  return walk;
}

/// Kernel tiles of the producer grid that meet one data tile.
template <class Int>
TW_HOST_DEVICE std::uint32_t target_plain(const OperandSync& op, std::int64_t data_tile) {
  Int rest = static_cast<Int>(data_tile);
  Int arrivals = 1;
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

}  // namespace detail

struct ContextMaps {
  TW_HOST_DEVICE static TileWalk walk(const OperandSync& op, int /*operand*/, const Coord& ktile,
                                      const LaunchArgs& /*args*/) {
    if ((op.flags & OperandSync::kSingleTile) != 0) {
      TileWalk one;
      one.count = 1;
      return one;
    }
    if (op.map_offsets != nullptr) {
      std::int64_t k = 0;
      for (int a = 0; a < op.num_axes; ++a) {
        k = k * op.shape[a] + (a < ktile.num_axes ? ktile.v[a] : 0);
      }
      TileWalk listed;
      listed.entries = op.map_tiles + op.map_offsets[k];
      listed.count = op.map_offsets[k + 1] - op.map_offsets[k];
      return listed;
    }
    return (op.flags & OperandSync::kWide) != 0 ? detail::walk_plain<std::uint64_t>(op, ktile)
                                                : detail::walk_plain<std::uint32_t>(op, ktile);
  }

  TW_HOST_DEVICE static std::uint32_t target(const OperandSync& op, int /*operand*/,
                                             std::int64_t data_tile, const LaunchArgs& /*args*/) {
    if (op.targets != nullptr) return op.targets[data_tile];
    if (op.target != 0) return op.target;
    return (op.flags & OperandSync::kWide) != 0
               ? detail::target_plain<std::uint64_t>(op, data_tile)
               : detail::target_plain<std::uint32_t>(op, data_tile);
  }
};

/// Maps compiled into the kernel. F has `static TileSpan map(int operand, const Coord& kernel_tile,
/// const LaunchArgs&)` and `static std::uint32_t target(int operand, const Coord& data_tile, const
/// LaunchArgs&)`, both host and device; the host uses the same functions as twins.
template <class F>
struct FunctorMaps {
  TW_HOST_DEVICE static TileWalk walk(const OperandSync& op, int operand, const Coord& ktile,
                                      const LaunchArgs& args) {
    TileWalk walk;
    walk.span = F::map(operand, ktile, args);
    walk.count = walk.span.count();
    for (int a = walk.span.extent.num_axes; a < op.num_axes; ++a) walk.span.extent.v[a] = 1;
    walk.span.first.num_axes = walk.span.extent.num_axes = op.num_axes;
    walk.grid.num_axes = op.num_axes;
    for (int a = 0; a < op.num_axes; ++a) {
      walk.grid.v[a] = ceil_div(op.shape[a], op.dtile[a]);
      walk.first = walk.first * walk.grid.v[a] + walk.span.first.v[a];
    }
    return walk;
  }
  TW_HOST_DEVICE static std::uint32_t target(const OperandSync& op, int operand,
                                             std::int64_t data_tile, const LaunchArgs& args) {
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

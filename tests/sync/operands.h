// Operands filled by hand for tests of the kernel side: tensors with their words and bases.
#pragma once

#include <cstdint>
#include <vector>

#include "tileweave/core/coord.h"
#include "tileweave/sync/context.h"
#include "tileweave/tile/tile_map.h"
#include "tileweave/tile/tiling.h"

namespace tileweave::testing {

/// An operand in closed form. `producer` gives the target of a waiting operand.
inline OperandSlot plain_operand(const Tiling& kernel, const Tiling& data, const Tiling& producer) {
  OperandSlot op{};
  op.tiles.num_axes = kernel.shape.num_axes;
  op.tiles.word_stride = 1;
  op.tiles.base_stride = 1;
  constexpr std::int64_t kNarrow = std::int64_t{1} << 31;
  for (int a = 0; a < op.tiles.num_axes; ++a) {
    op.tiles.shape[a] = kernel.shape[a];
    op.tiles.ktile[a] = kernel.tile[a];
    op.tiles.dtile[a] = data.tile[a];
    op.tiles.producer_ktile[a] = producer.tile[a];
    for (const std::int64_t size :
         {op.tiles.shape[a], op.tiles.ktile[a], op.tiles.dtile[a], op.tiles.producer_ktile[a]}) {
      if (size >= kNarrow) op.sync.flags |= OperandSync::kWide;
    }
  }
  op.sync.flags |= OperandSync::kClosedFormTarget;
  if (op.tiles.num_axes == 1) op.sync.flags |= OperandSync::kOneAxis;
  if (data.count() == 1) {
    op.sync.flags |= OperandSync::kSingleTile;
    op.sync.target = static_cast<std::uint32_t>(producer.count());
  }
  return op;
}

/// An operand whose map is a table; `map` and `targets` must outlive it.
inline OperandSlot table_operand(const TileMap& map, const std::vector<std::uint32_t>& targets) {
  OperandSlot op{};
  op.tiles.num_axes = map.kernel_grid().num_axes;
  op.tiles.word_stride = 1;
  op.tiles.base_stride = 1;
  for (int a = 0; a < op.tiles.num_axes; ++a) {
    op.tiles.shape[a] = map.kernel_grid()[a];
    op.tiles.ktile[a] = op.tiles.dtile[a] = op.tiles.producer_ktile[a] = 1;
  }
  op.tiles.map_offsets = map.offsets().data();
  op.tiles.map_tiles = map.tiles().data();
  op.tiles.targets = targets.data();
  return op;
}

/// A tensor of plain integers with semaphores on its data tiles.
struct TestTensor {
  TestTensor(const Shape& shape, const Coord& dtile, const Coord& producer_tile,
             std::uint32_t start_count)
      : data{shape, dtile},
        producer{shape, producer_tile},
        words(static_cast<std::size_t>(data.count()), start_count),
        base(words),
        values(static_cast<std::size_t>(shape.volume()), 0) {}

  OperandSlot operand(const Tiling& kernel) {
    OperandSlot op = plain_operand(kernel, data, producer);
    op.sync.words = words.data();
    op.sync.base = base.data();
    return op;
  }
  std::uint32_t target(std::int64_t tile) const {
    return static_cast<std::uint32_t>(TargetFunction{data, producer}(data.coord(tile)));
  }
  /// The base update of the run's last node.
  void end_run() {
    for (std::size_t t = 0; t < base.size(); ++t) {
      base[t] += target(static_cast<std::int64_t>(t));
    }
  }
  /// Row-major number of an element.
  std::size_t at(const Coord& element) const {
    return static_cast<std::size_t>(
        Tiling{data.shape, Coord::filled(data.shape.num_axes, 1)}.linear(element));
  }

  Tiling data;
  Tiling producer;
  std::vector<std::uint32_t> words;
  std::vector<std::uint32_t> base;
  std::vector<std::int64_t> values;
};

/// Device words that every node of a test shares.
struct TestDevice {
  std::uint32_t abort = 0;
  HangReport report{};

  SyncHeader header(std::uint32_t node, std::int64_t num_works, std::uint64_t deadline_ns = 0) {
    SyncHeader h{};
    h.abort = &abort;
    h.report = &report;
    h.node = node;
    h.rank = 3;
    h.num_works = num_works;
    h.deadline_ns = deadline_ns;
    return h;
  }
};

}  // namespace tileweave::testing

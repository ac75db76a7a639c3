// Argmax: ids (S) i32 = column of the largest element per row of logits (S, V) f32.
//
// Ties go to the lowest column. NaN never wins; a row of NaNs alone gives 0. Wide rows are split
// over works: each finds the largest of its columns, the last to arrive compares those in ascending
// column order, so neither splits nor schedules can change a result. Kernel tiles:
//   logits  slot 0  {m, n}: (tile_m, tile_n)
//   ids     slot 1  {m}: (tile_m); signalled once, by the last arriver
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/plan/node.h"

namespace tileweave {

struct ArgmaxOptions {
  std::string name = "argmax";
  std::int64_t tile_m = 8;      // rows per work
  std::int64_t tile_n = 8192;   // columns per work
  std::int64_t num_blocks = 0;  // persistent blocks; 0: one per work
  TileOrder order = TileOrder::identity();
  double cost_of_tile = 1;                  // ticks of a whole tile; a ragged one in proportion
  std::optional<Cost> cost = std::nullopt;  // instead of the above
  std::optional<EdgePolicy> edge = std::nullopt;
};

/// Columns per work with which rows that are taken one at a time (tile_m 1) keep one wave of a
/// GPU's blocks busy, each thread with at least two 16-byte loads.
std::int64_t argmax_tile_n(std::int64_t rows, std::int64_t cols);

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit.
NodeSpec argmax(const TensorTable& tensors, const ArgmaxOptions& options, TensorId logits,
                TensorId ids);

}  // namespace tileweave

// TileOrder: in which order a kernel's blocks take its kernel tiles (the paper's cta_remap).
//
// Closed forms (identity, rotation) cost no memory access in the kernel; every other order is a
// table of work indices, one per position, that must be a permutation (verify() checks it). A
// dynamically claimed order walks the table, each entry once. Host values; `at` is what the kernel
// computes too.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tileweave/tile/tile_map.h"

namespace tileweave {

enum class OrderForm : std::int32_t { kIdentity, kRotation, kTable };

class TileOrder {
 public:
  static TileOrder identity() { return {}; }
  /// Position p takes work (p + offset) mod count: local shards first (paper section 3.1).
  static TileOrder rotation(std::int64_t offset);
  static TileOrder table(std::vector<std::int32_t> works);
  /// Works sorted by descending cost, ties by index.
  static TileOrder longest_first(std::int64_t count,
                                 const std::function<double(std::int64_t)>& cost);
  /// Consumer works in the order in which the producer completes what they read: work w comes when
  /// the last data tile it waits on has its last arrival. `producer_rank[t]` is the position at
  /// which data tile t is complete (see `completion_ranks`); `reads(w)` lists its data tiles.
  static TileOrder follow_producer(
      std::int64_t count, const std::vector<std::int64_t>& producer_rank,
      const std::function<std::vector<std::int64_t>(std::int64_t)>& reads);

  OrderForm form() const { return form_; }
  std::int64_t offset() const { return offset_; }
  const std::vector<std::int32_t>& works() const { return works_; }

  /// Work taken at `position` of `count`.
  std::int64_t at(std::int64_t position, std::int64_t count) const;

 private:
  OrderForm form_ = OrderForm::kIdentity;
  std::int64_t offset_ = 0;
  std::vector<std::int32_t> works_;
};

/// For every data tile the last position (in `order`, of `count` works) that arrives on it, or -1
/// where no work does. `writes(w)` lists the data tiles that work w signals.
std::vector<std::int64_t> completion_ranks(
    const TileOrder& order, std::int64_t count, std::int64_t num_data_tiles,
    const std::function<std::vector<std::int64_t>(std::int64_t)>& writes);

}  // namespace tileweave

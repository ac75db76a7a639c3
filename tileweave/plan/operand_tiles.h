// OperandTiles: the kernel tiles that the works of a node touch on one operand, and the data tiles
// that each of them waits on or arrives on, enumerated once for the contract check.
//
// Enumeration reports what is wrong with the operand by itself: tilings that disagree, a signal
// through a view, tiles that do not exist, indices that overflow. What is wrong is left out (a map
// for another tiling is replaced by the derived one), so that later checks report only their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tileweave/plan/node_words.h"
#include "tileweave/plan/tile_finder.h"
#include "tileweave/plan/verdict.h"

namespace tileweave {

class OperandTiles {
 public:
  /// The operand as the node declares it (a copy of what later checks need).
  const OperandSpec& spec() const { return spec_; }
  std::size_t index() const { return index_; }
  /// Whether works wait on or arrive on data tiles: a sync slot on a tiled tensor.
  bool synchronises() const { return synchronises_; }
  /// Whether every touched kernel tile's data tiles are at least those its box meets.
  bool covers_own_box() const { return covers_own_box_; }

  /// Distinct kernel tiles that some work touches, ascending.
  std::int64_t num_touched() const { return static_cast<std::int64_t>(touched_.size()); }
  std::int64_t touched(std::int64_t i) const { return touched_[static_cast<std::size_t>(i)]; }
  Box box(std::int64_t i) const { return finder_.tiles().box(touched(i)); }
  /// Place among the touched ones of a kernel tile, -1 where no work touches it.
  std::int64_t place_of(std::int64_t kernel_tile) const;
  /// Places of the touched kernel tiles that meet `box`.
  void places_meeting(const Box& box, std::vector<std::int64_t>& places) const;

  /// Works that touch a kernel tile: how many, and the first of them (ascending).
  std::int64_t num_works(std::int64_t i) const { return num_works_[static_cast<std::size_t>(i)]; }
  std::vector<std::int64_t> works(std::int64_t i, std::int64_t at_most) const;

  /// Data tiles of a touched kernel tile, ascending; for a write as often as it arrives on each.
  std::span<const std::int64_t> data_tiles(std::int64_t i) const;
  const TileSet& kernel_tiles() const { return finder_.tiles(); }

 private:
  friend class OperandEnumeration;

  OperandSpec spec_;
  std::size_t index_ = 0;
  bool synchronises_ = false;
  bool covers_own_box_ = false;
  TileFinder finder_;
  std::vector<std::int64_t> touched_;
  std::vector<std::int64_t> num_works_;
  std::vector<std::pair<std::int64_t, std::int64_t>> touches_;  // (kernel tile, work), if listed
  std::vector<std::size_t> offsets_;
  std::vector<std::int64_t> data_tiles_;
};

/// Nothing when the operand cuts another shape than the tensor's: no tile of it can be judged.
std::optional<OperandTiles> enumerate_operand(const NodeLabel& label, const NodeSpec& node,
                                              std::size_t index, const Tensor& tensor,
                                              std::vector<Fault>& faults);

}  // namespace tileweave

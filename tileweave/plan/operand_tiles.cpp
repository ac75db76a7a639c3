#include "tileweave/plan/operand_tiles.h"

#include <algorithm>
#include <numeric>

#include "tileweave/core/format.h"

namespace tileweave {
namespace {

/// Grids that a kernel indexes alike: equal up to trailing axes of one tile.
bool same_grid(const Coord& a, const Coord& b) {
  for (int axis = 0; axis < std::max(a.num_axes, b.num_axes); ++axis) {
    if ((axis < a.num_axes ? a[axis] : 1) != (axis < b.num_axes ? b[axis] : 1)) return false;
  }
  return true;
}

}  // namespace

std::int64_t OperandTiles::place_of(std::int64_t kernel_tile) const {
  if (num_touched() == kernel_tiles().count()) return kernel_tile;
  const auto it = std::lower_bound(touched_.begin(), touched_.end(), kernel_tile);
  return it != touched_.end() && *it == kernel_tile ? it - touched_.begin() : -1;
}

void OperandTiles::places_meeting(const Box& box, std::vector<std::int64_t>& places) const {
  finder_.meeting(box, places);
  if (num_touched() == kernel_tiles().count()) return;
  for (std::int64_t& tile : places) tile = place_of(tile);
  std::erase(places, -1);
}

std::vector<std::int64_t> OperandTiles::works(std::int64_t i, std::int64_t at_most) const {
  std::vector<std::int64_t> list(static_cast<std::size_t>(std::min(num_works(i), at_most)));
  if (spec_.tiles_of_work) {
    auto it =
        std::lower_bound(touches_.begin(), touches_.end(), std::pair(touched(i), std::int64_t{0}));
    for (std::int64_t& work : list) work = (it++)->second;
  } else {
    std::iota(list.begin(), list.end(), kernel_tiles().count() == 1 ? 0 : touched(i));
  }
  return list;
}

std::span<const std::int64_t> OperandTiles::data_tiles(std::int64_t i) const {
  if (!synchronises_) return {};
  const std::size_t begin = offsets_[static_cast<std::size_t>(i)];
  return {data_tiles_.data() + begin, offsets_[static_cast<std::size_t>(i) + 1] - begin};
}

/// Fills an OperandTiles step by step; lives for one call of enumerate_operand.
class OperandEnumeration {
 public:
  OperandEnumeration(const NodeLabel& label, const NodeSpec& node, std::size_t index,
                     const Tensor& tensor, std::vector<Fault>& faults)
      : label_(label), node_(node), tensor_(tensor), faults_(faults) {
    out_.spec_ = node.operands[index];
    out_.index_ = index;
    out_.finder_ = TileFinder(kernel_tiles_of(out_.spec_, tensor));
    out_.synchronises_ = node.integrated && tensor.tiled() && out_.spec_.sync_slot >= 0;
  }

  std::optional<OperandTiles> run() {
    const Shape& cut = out_.kernel_tiles().shape();
    if (!(cut == tensor_.spec.shape)) {
      fault(FaultKind::kTilingsDisagree, "cuts " + quoted(tensor_) + " into " +
                                             out_.kernel_tiles().describe() +
                                             ", but its shape is " + to_string(tensor_.spec.shape));
      return std::nullopt;
    }
    check_view();
    check_assumed_tiles();
    check_map();
    check_sizes();
    if (out_.spec_.tiles_of_work) {
      list_touched();
    } else {
      derive_touched();
    }
    if (out_.synchronises_) list_data_tiles();
    return std::move(out_);
  }

 private:
  void fault(FaultKind kind, const std::string& rest, std::int64_t tile = -1) {
    faults_.push_back({kind, label_.text() + " " + rest, label_.id, out_.spec_.tensor, tile});
  }
  bool writes() const { return out_.spec_.access == Access::kWrite; }
  /// The tiles that the operand's map leads to.
  const TileSet& led_to() const {
    return out_.spec_.view.empty() ? tensor_.tiles : out_.spec_.view;
  }

  std::string led_to_text() const {
    if (!out_.spec_.view.empty()) return "its view has " + led_to().describe();
    if (!tensor_.tiled()) return "the tensor has no data tiles";
    return "the tensor has " + led_to().describe();
  }
  /// What was made by hand for another tiling is set aside: later checks take the derived form.
  void disagree(const std::string& rest) {
    fault(FaultKind::kTilingsDisagree, rest);
    out_.spec_.map.reset();
    out_.spec_.target.reset();
  }

  void check_view() {
    TileSet& view = out_.spec_.view;
    if (view.empty()) return;
    if (writes()) {
      fault(FaultKind::kSignalThroughView, "signals " + quoted(tensor_) + " through a view of " +
                                               view.describe() + ", but a view owns no semaphores");
      view = {};
    } else if (!(view.shape() == tensor_.spec.shape)) {
      fault(FaultKind::kTilingsDisagree, "views " + quoted(tensor_) + " as " + view.describe() +
                                             ", but its shape is " + to_string(tensor_.spec.shape));
      view = {};
    }
  }

  void check_assumed_tiles() {
    const TileSet& assumed = out_.spec_.assumed_tiles;
    if (assumed.empty() || assumed == led_to()) return;
    disagree("was made for " + assumed.describe() + " on " + quoted(tensor_) + ", but " +
             led_to_text());
  }

  void check_map() {
    const std::optional<TileMap>& map = out_.spec_.map;
    out_.covers_own_box_ = true;
    if (!map || !out_.synchronises_) return;
    const std::string maps = "maps kernel tiles of " + quoted(tensor_);
    const TileSet& kernel = out_.kernel_tiles();
    if (!same_grid(map->kernel_grid(), kernel.grid())) {
      disagree(maps + " from a grid of " + to_string(map->kernel_grid()) +
               ", but its kernel tiles form a grid of " + to_string(kernel.grid()));
      return;
    }
    const bool plain = map->form() == MapForm::kPlain;
    if (plain && kernel.is_plain() && !(map->kernel() == kernel.tiling())) {
      disagree(maps + " as " + TileSet::plain(map->kernel()).describe() +
               ", but its kernel tiles are " + kernel.describe());
      return;
    }
    if (map->form() != MapForm::kTable &&
        !(led_to().is_plain() && map->data() == led_to().tiling())) {
      disagree(maps + " to " + TileSet::plain(map->data()).describe() + ", but " + led_to_text());
      return;
    }
    out_.covers_own_box_ = plain && kernel.is_plain();
  }

  void check_sizes() {
    if (!out_.synchronises_) return;
    const std::int64_t num_tiles = tensor_.tiles.count();
    const std::int64_t stride = std::max(tensor_.spec.word_stride, 1);
    if (num_tiles > kMaxIndex / stride) {
      fault(FaultKind::kIndexOverflow, "synchronises on " + quoted(tensor_) + ", whose " +
                                           std::to_string(num_tiles) + " data tiles of " +
                                           counted(stride, "word") + " exceed 2^31 - 1 words");
      out_.synchronises_ = false;
    }
    const std::int64_t kernel_count = out_.kernel_tiles().count();
    if (writes() && kernel_count > kMaxIndex) {
      fault(FaultKind::kIndexOverflow, "writes " + quoted(tensor_) + " in " +
                                           std::to_string(kernel_count) +
                                           " kernel tiles, more than 2^31 - 1");
      out_.synchronises_ = false;
    }
  }

  void fault_missing_tile(std::int64_t work, std::int64_t tile) {
    if (missing_++ > 0) return;
    missing_work_ = work;
    missing_tile_ = tile;
  }
  void report_missing_tiles() {
    if (missing_ == 0) return;
    fault(FaultKind::kIndexOverflow, "has work " + std::to_string(missing_work_) +
                                         " touch kernel tile " + std::to_string(missing_tile_) +
                                         " of " + quoted(tensor_) + ", which has " +
                                         counted(out_.kernel_tiles().count(), "kernel tile") +
                                         and_more(missing_ - 1, "touched tile"));
  }

  void derive_touched() {
    const std::int64_t count = out_.kernel_tiles().count();
    if (count == 1) {
      out_.touched_ = {0};
      out_.num_works_ = {node_.num_works};
      return;
    }
    const std::int64_t num_touched = std::min(count, node_.num_works);
    out_.touched_.resize(static_cast<std::size_t>(num_touched));
    std::iota(out_.touched_.begin(), out_.touched_.end(), 0);
    out_.num_works_.assign(out_.touched_.size(), 1);
    missing_ = node_.num_works - num_touched;
    missing_work_ = missing_tile_ = count;
    report_missing_tiles();
  }

  void list_touched() {
    const std::int64_t count = out_.kernel_tiles().count();
    auto& touches = out_.touches_;
    for (std::int64_t w = 0; w < node_.num_works; ++w) {
      for (const std::int64_t tile : out_.spec_.tiles_of_work(w)) {
        if (tile < 0 || tile >= count) {
          fault_missing_tile(w, tile);
        } else {
          touches.emplace_back(tile, w);
        }
      }
    }
    report_missing_tiles();
    std::sort(touches.begin(), touches.end());
    const auto twice = std::adjacent_find(touches.begin(), touches.end());
    if (writes() && twice != touches.end()) {
      fault(FaultKind::kDoubleWrite, "has work " + std::to_string(twice->second) +
                                         " touch kernel tile " + std::to_string(twice->first) +
                                         " of " + quoted(tensor_) + " twice");
    }
    touches.erase(std::unique(touches.begin(), touches.end()), touches.end());
    for (const auto& [tile, work] : touches) {
      if (out_.touched_.empty() || out_.touched_.back() != tile) {
        out_.touched_.push_back(tile);
        out_.num_works_.push_back(0);
      }
      ++out_.num_works_.back();
    }
  }

  void list_data_tiles() {
    const TileFinder target(led_to());
    const TileFinder base(tensor_.tiles);
    std::int64_t unknown = 0;
    std::int64_t unknown_from = 0;
    std::int64_t unknown_to = 0;
    std::vector<std::int64_t> tiles;
    std::vector<std::int64_t> of_view;
    out_.offsets_.push_back(0);
    for (std::int64_t i = 0; i < out_.num_touched(); ++i) {
      if (out_.spec_.map) {
        tiles = mapped(out_.touched(i));
        std::erase_if(tiles, [&](std::int64_t t) {
          if (t >= 0 && t < target.tiles().count()) return false;
          if (unknown++ == 0) unknown_from = out_.touched(i), unknown_to = t;
          return true;
        });
      } else {
        target.meeting(out_.box(i), tiles);
      }
      if (!out_.spec_.view.empty()) {
        std::vector<std::int64_t> through;
        for (const std::int64_t v : tiles) {
          base.meeting(out_.spec_.view.box(v), of_view);
          through.insert(through.end(), of_view.begin(), of_view.end());
        }
        tiles = std::move(through);
      }
      std::sort(tiles.begin(), tiles.end());
      // A kernel that lists a tile twice waits twice, which is idle, but also signals twice.
      if (!writes()) tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
      out_.data_tiles_.insert(out_.data_tiles_.end(), tiles.begin(), tiles.end());
      out_.offsets_.push_back(out_.data_tiles_.size());
    }
    if (unknown > 0) {
      fault(FaultKind::kIndexOverflow,
            "maps kernel tile " + std::to_string(unknown_from) + " of " + quoted(tensor_) +
                " to tile " + std::to_string(unknown_to) + ", but " +
                (out_.spec_.view.empty() ? "the tensor" : "the view") + " has " +
                counted(target.tiles().count(), "tile") + and_more(unknown - 1, "mapped tile"));
    }
  }

  std::vector<std::int64_t> mapped(std::int64_t kernel_tile) const {
    const TileMap& map = *out_.spec_.map;
    const Coord& grid = map.kernel_grid();
    return map.tiles_of(Tiling{grid, Coord::filled(grid.num_axes, 1)}.coord(kernel_tile),
                        node_.args);
  }

  const NodeLabel& label_;
  const NodeSpec& node_;
  const Tensor& tensor_;
  std::vector<Fault>& faults_;
  OperandTiles out_;
  std::int64_t missing_ = 0;
  std::int64_t missing_work_ = 0;
  std::int64_t missing_tile_ = 0;
};

std::optional<OperandTiles> enumerate_operand(const NodeLabel& label, const NodeSpec& node,
                                              std::size_t index, const Tensor& tensor,
                                              std::vector<Fault>& faults) {
  return OperandEnumeration(label, node, index, tensor, faults).run();
}

}  // namespace tileweave

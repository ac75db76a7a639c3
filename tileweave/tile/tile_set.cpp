#include "tileweave/tile/tile_set.h"

#include <algorithm>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"

namespace tileweave {
namespace {

std::string sizes(const Coord& c) {
  std::string text;
  for (int a = 0; a < c.num_axes; ++a) text += (a > 0 ? "x" : "") + std::to_string(c[a]);
  return text;
}

void check_boxes(const Shape& shape, const std::vector<Box>& boxes) {
  if (const char* what = invalid(Tiling{shape, shape})) throw Error("tile table", what);
  Box whole;
  whole.begin = Coord::filled(shape.num_axes, 0);
  whole.size = shape;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const Box& box = boxes[i];
    if (box.begin.num_axes != shape.num_axes || box.size.num_axes != shape.num_axes ||
        box.empty() || !contains(whole, box)) {
      throw Error("tile table", "box " + std::to_string(i) + " must lie inside " + sizes(shape),
                  to_string(box));
    }
  }
}

}  // namespace

TileSet TileSet::plain(const Tiling& tiling) {
  if (const char* what = invalid(tiling)) {
    throw Error("tiling " + sizes(tiling.shape) + " by " + sizes(tiling.tile), what);
  }
  TileSet set;
  set.shape_ = tiling.shape;
  set.tiling_ = tiling;
  return set;
}

TileSet TileSet::loose_table(const Shape& shape, std::vector<Box> boxes) {
  check_boxes(shape, boxes);
  TileSet set;
  set.shape_ = shape;
  set.boxes_ = std::make_shared<const std::vector<Box>>(std::move(boxes));
  return set;
}

TileSet TileSet::table(const Shape& shape, std::vector<Box> boxes) {
  check_boxes(shape, boxes);
  // Disjoint boxes whose volumes add up to the tensor's cover it. Sorting by the first axis keeps
  // the pairwise test to neighbours that overlap there.
  std::vector<std::size_t> by_row(boxes.size());
  for (std::size_t i = 0; i < boxes.size(); ++i) by_row[i] = i;
  std::sort(by_row.begin(), by_row.end(),
            [&](std::size_t a, std::size_t b) { return boxes[a].begin[0] < boxes[b].begin[0]; });
  std::int64_t volume = 0;
  for (std::size_t i = 0; i < by_row.size(); ++i) {
    const Box& a = boxes[by_row[i]];
    volume += a.volume();
    for (std::size_t j = i + 1; j < by_row.size(); ++j) {
      const Box& b = boxes[by_row[j]];
      if (b.begin[0] >= a.begin[0] + a.size[0]) break;
      if (!intersect(a, b).empty()) {
        throw Error("tile table", "boxes of a data tiling must not overlap",
                    "boxes " + std::to_string(std::min(by_row[i], by_row[j])) + " and " +
                        std::to_string(std::max(by_row[i], by_row[j])) + " sharing " +
                        to_string(intersect(a, b)));
      }
    }
  }
  if (volume != shape.volume()) {
    throw Error("tile table",
                "the boxes must cover all " + std::to_string(shape.volume()) + " elements of " +
                    sizes(shape),
                std::to_string(volume));
  }
  return loose_table(shape, std::move(boxes));
}

std::int64_t TileSet::count() const {
  if (empty()) return 0;
  return boxes_ ? static_cast<std::int64_t>(boxes_->size()) : tiling_.count();
}

Box TileSet::box(std::int64_t index) const {
  if (boxes_) return (*boxes_)[static_cast<std::size_t>(index)];
  return tiling_.box(tiling_.coord(index));
}

Coord TileSet::coord(std::int64_t index) const {
  return boxes_ ? Coord{index} : tiling_.coord(index);
}

std::int64_t TileSet::linear(const Coord& coord) const {
  return boxes_ ? coord[0] : tiling_.linear(coord);
}

Coord TileSet::grid() const {
  return boxes_ ? Coord{count()} : tiling_.grid();
}

void TileSet::for_each_meeting(const Box& box,
                               const std::function<void(std::int64_t)>& visit) const {
  if (box.empty()) return;
  if (boxes_) {
    for (std::size_t i = 0; i < boxes_->size(); ++i) {
      if (!intersect((*boxes_)[i], box).empty()) visit(static_cast<std::int64_t>(i));
    }
    return;
  }
  const TileSpan span = tiles_meeting(tiling_, box);
  const Tiling offsets{span.extent, Coord::filled(span.extent.num_axes, 1)};
  for (std::int64_t i = 0, n = span.count(); i < n; ++i) {
    Coord at = offsets.coord(i);
    for (int a = 0; a < at.num_axes; ++a) at[a] += span.first[a];
    visit(tiling_.linear(at));
  }
}

std::string TileSet::describe() const {
  if (empty()) return "no tiling";
  if (boxes_) return "table of " + std::to_string(count()) + " boxes over " + sizes(shape_);
  return sizes(tiling_.tile) + " tiles of " + sizes(shape_);
}

bool operator==(const TileSet& a, const TileSet& b) {
  if (a.boxes_ || b.boxes_) {
    if (a.boxes_ == b.boxes_) return true;
    return a.boxes_ && b.boxes_ && a.shape_ == b.shape_ && *a.boxes_ == *b.boxes_;
  }
  return a.tiling_ == b.tiling_;
}

}  // namespace tileweave

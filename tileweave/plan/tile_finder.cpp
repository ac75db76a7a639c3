#include "tileweave/plan/tile_finder.h"

#include <algorithm>
#include <limits>

namespace tileweave {
namespace {

void meeting_of_grid(const Tiling& grid, const Box& box, std::vector<std::int64_t>& found) {
  const TileSpan span = tiles_meeting(grid, box);
  const int num_axes = grid.shape.num_axes;
  Coord stride;
  std::int64_t first = 0;
  std::int64_t product = 1;
  for (int a = num_axes - 1; a >= 0; --a) {
    stride[a] = product;
    first += span.first[a] * product;
    product *= grid.num_tiles(a);
  }
  Coord at;
  std::int64_t index = first;
  for (std::int64_t left = span.count(); left > 0; --left) {
    found.push_back(index);
    for (int a = num_axes - 1; a >= 0; --a) {
      index += stride[a];
      if (++at[a] < span.extent[a]) break;
      index -= span.extent[a] * stride[a];
      at[a] = 0;
    }
  }
}

}  // namespace

TileFinder::TileFinder(TileSet tiles) : tiles_(std::move(tiles)) {
  if (tiles_.empty() || tiles_.is_plain()) return;
  for (std::int64_t t = 0, n = tiles_.count(); t < n; ++t) {
    const Box box = tiles_.box(t);
    by_begin_.emplace_back(box.begin[0], t);
    longest_ = std::max(longest_, box.size[0]);
  }
  std::sort(by_begin_.begin(), by_begin_.end());
}

void TileFinder::meeting(const Box& box, std::vector<std::int64_t>& found) const {
  found.clear();
  if (tiles_.empty() || box.empty()) return;
  if (tiles_.is_plain()) {
    meeting_of_grid(tiles_.tiling(), box, found);
    return;
  }
  const std::int64_t end = box.begin[0] + box.size[0];
  constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
  for (auto it = std::lower_bound(by_begin_.begin(), by_begin_.end(),
                                  std::pair(box.begin[0] - longest_ + 1, kFirst));
       it != by_begin_.end() && it->first < end; ++it) {
    if (!intersect(tiles_.box(it->second), box).empty()) found.push_back(it->second);
  }
  std::sort(found.begin(), found.end());
}

}  // namespace tileweave

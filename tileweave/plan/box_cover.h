// What is left of a box when others are taken out of it, as disjoint boxes.
#pragma once

#include <vector>

#include "tileweave/core/coord.h"

namespace tileweave {

/// Replaces every box of `rest` by its parts outside `taken`.
inline void subtract(std::vector<Box>& rest, const Box& taken) {
  std::vector<Box> left;
  for (Box box : rest) {
    const Box common = intersect(box, taken);
    if (common.empty()) {
      left.push_back(box);
      continue;
    }
    // Cut off what lies before and behind the common part, axis by axis.
    for (int a = 0; a < box.begin.num_axes; ++a) {
      const std::int64_t begin = box.begin[a];
      const std::int64_t end = begin + box.size[a];
      const std::int64_t common_end = common.begin[a] + common.size[a];
      if (common.begin[a] > begin) {
        left.push_back(box);
        left.back().size[a] = common.begin[a] - begin;
      }
      if (common_end < end) {
        left.push_back(box);
        left.back().begin[a] = common_end;
        left.back().size[a] = end - common_end;
      }
      box.begin[a] = common.begin[a];
      box.size[a] = common.size[a];
    }
  }
  rest = std::move(left);
}

}  // namespace tileweave

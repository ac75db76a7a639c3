#include "tileweave/moe/planner/reduction_pruning.h"

namespace tileweave {
namespace {

std::int64_t time_of(const Placement& at, std::int32_t rank, std::int32_t lambda) {
  return static_cast<std::int64_t>(kTimeUnit) * at.load[rank] +
         static_cast<std::int64_t>(lambda) * at.exported[rank];
}

std::int32_t slowest(const Placement& at, std::int32_t lambda) {
  std::int32_t best = 0;
  for (std::int32_t g = 1; g < at.shape.num_ranks; ++g) {
    if (time_of(at, g, lambda) > time_of(at, best, lambda)) best = g;
  }
  return best;
}

/// Drops the smallest replica that `owner` exports, if it has fewer than lambda blocks.
bool drop_smallest(const Placement& at, std::int32_t owner, std::int32_t lambda) {
  std::int32_t size = 0, expert = 0, rank = 0;
  const std::int32_t first = at.shape.first_owned(owner);
  for (std::int32_t e = first; e < first + at.shape.num_owned(owner); ++e) {
    for (std::int32_t g = 0; g < at.shape.num_ranks; ++g) {
      const std::int32_t v = at.of(e, g);
      if (g == owner || v == 0 || (size != 0 && v >= size)) continue;
      if (static_cast<std::int64_t>(kTimeUnit) * v < lambda) size = v, expert = e, rank = g;
    }
  }
  if (size == 0) return false;
  at.move(expert, rank, owner, size);
  return true;
}

}  // namespace

std::int64_t predicted_time(const Placement& at, std::int32_t lambda) {
  return time_of(at, slowest(at, lambda), lambda);
}

void prune_for_reduction(const Placement& at, std::int32_t lambda) {
  for (std::int32_t i = at.num_replicas(); i > 0; --i) {
    const std::int32_t owner = slowest(at, lambda);
    if (at.exported[owner] == 0 || !drop_smallest(at, owner, lambda)) return;
  }
}

}  // namespace tileweave

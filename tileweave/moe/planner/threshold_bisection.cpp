#include "tileweave/moe/planner/threshold_bisection.h"

#include <algorithm>

namespace tileweave {
namespace {

constexpr std::int32_t kLeastReplicaRows = 1024;

std::int32_t most_loaded(const Placement& at) {
  return static_cast<std::int32_t>(std::max_element(at.load, at.load + at.shape.num_ranks) -
                                   at.load);
}

/// The rank with the least load that may open a replica of `expert`; -1: none.
std::int32_t receiver_of(const Placement& at, std::int32_t expert, std::int32_t owner) {
  std::int32_t best = -1;
  for (std::int32_t g = 0; g < at.shape.num_ranks; ++g) {
    if (g == owner || at.of(expert, g) > 0 || at.replicas[g] >= at.shape.num_slots) continue;
    if (best < 0 || at.load[g] < at.load[best]) best = g;
  }
  return best;
}

/// Brings one rank down to the threshold; false: it cannot be.
bool relieve(const Placement& at, std::int32_t owner, std::int32_t threshold,
             std::int32_t least_blocks) {
  const std::int32_t first = at.shape.first_owned(owner), count = at.shape.num_owned(owner);
  // Every step fills a receiver's room, uses up an expert or is the last.
  for (std::int32_t step = 0; step < count + at.shape.num_ranks; ++step) {
    if (at.load[owner] <= threshold) return true;
    std::int32_t expert = first;
    for (std::int32_t e = first; e < first + count; ++e) {
      if (at.of(e, owner) > at.of(expert, owner)) expert = e;
    }
    const std::int32_t to = receiver_of(at, expert, owner);
    if (to < 0) return false;
    const std::int32_t excess = std::max(at.load[owner] - threshold, least_blocks);
    const std::int32_t blocks =
        std::min({excess, at.of(expert, owner) - 1, threshold - at.load[to]});
    if (blocks < least_blocks) return false;
    at.move(expert, owner, to, blocks);
  }
  return at.load[owner] <= threshold;
}

bool place_below(const Placement& at, const std::int32_t* expert_blocks, std::int32_t threshold) {
  at.reset(expert_blocks);
  const std::int32_t rows = at.shape.block_rows;
  const std::int32_t least_blocks = std::max(1, (kLeastReplicaRows + rows - 1) / rows);
  for (std::int32_t i = 0; i < at.shape.num_ranks; ++i) {
    const std::int32_t owner = most_loaded(at);
    if (at.load[owner] <= threshold) return true;
    if (!relieve(at, owner, threshold, least_blocks)) return false;
  }
  return at.max_load() <= threshold;
}

}  // namespace

void bisect_threshold(std::int32_t fair_share, const PlannerWorkspace& workspace) {
  const Placement &best = workspace.best, &current = workspace.current;
  best.reset(workspace.expert_blocks);
  std::int32_t low = fair_share - 1, high = best.max_load();  // low: held to be infeasible
  const std::int32_t tolerance = std::max(1, fair_share / 100);
  for (std::int32_t step = 0; step < 32 && high - low > tolerance; ++step) {
    const std::int32_t threshold = low + (high - low) / 2;
    if (place_below(current, workspace.expert_blocks, threshold)) {
      best.copy_from(current);
      high = threshold;
    } else {
      low = threshold;
    }
  }
}

}  // namespace tileweave

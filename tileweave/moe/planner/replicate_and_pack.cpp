#include "tileweave/moe/planner/replicate_and_pack.h"

#include <algorithm>

namespace tileweave {
namespace {

/// The expert with the most blocks per copy that has fewer copies than blocks and than ranks.
std::int32_t most_crowded(const PlannerShape& shape, const std::int32_t* blocks,
                          const std::int32_t* copies) {
  std::int32_t best = -1;
  for (std::int32_t e = 0; e < shape.num_experts; ++e) {
    if (copies[e] >= std::min(shape.num_ranks, blocks[e])) continue;
    if (best < 0 || static_cast<std::int64_t>(blocks[e]) * copies[best] >
                        static_cast<std::int64_t>(blocks[best]) * copies[e]) {
      best = e;
    }
  }
  return best;
}

std::int32_t receiver_of(const Placement& at, std::int32_t expert, std::int32_t owner) {
  std::int32_t best = -1;
  for (std::int32_t g = 0; g < at.shape.num_ranks; ++g) {
    if (g == owner || at.of(expert, g) > 0 || at.replicas[g] >= at.shape.num_slots) continue;
    if (best < 0 || at.load[g] < at.load[best]) best = g;
  }
  return best;
}

}  // namespace

void replicate_and_pack(const PlannerWorkspace& workspace) {
  const Placement& at = workspace.best;
  const PlannerShape& shape = at.shape;
  const std::int32_t* blocks = workspace.expert_blocks;
  std::int32_t* copies = workspace.scratch;
  std::int32_t* unplaced = workspace.scratch + shape.num_experts;
  std::fill_n(copies, shape.num_experts, 1);
  const std::int64_t num_slots = static_cast<std::int64_t>(shape.num_ranks) * shape.num_slots;
  for (std::int64_t i = 0; i < num_slots; ++i) {
    const std::int32_t e = most_crowded(shape, blocks, copies);
    if (e < 0) break;
    ++copies[e];
  }
  at.reset(blocks);
  // Owners keep their share, the larger one where it does not divide; the rest is packed.
  for (std::int32_t e = 0; e < shape.num_experts; ++e) {
    unplaced[e] = copies[e] - 1;
    at.load[shape.owner_of(e)] -= unplaced[e] * (blocks[e] / copies[e]);
  }
  for (std::int64_t i = 0; i < num_slots; ++i) {
    std::int32_t expert = -1;
    for (std::int32_t e = 0; e < shape.num_experts; ++e) {
      if (unplaced[e] == 0) continue;
      if (expert < 0 || blocks[e] / copies[e] > blocks[expert] / copies[expert]) expert = e;
    }
    if (expert < 0) break;
    --unplaced[expert];
    const std::int32_t owner = shape.owner_of(expert), share = blocks[expert] / copies[expert];
    at.load[owner] += share;  // until it is placed
    const std::int32_t to = receiver_of(at, expert, owner);
    if (to >= 0) at.move(expert, owner, to, share);
  }
}

}  // namespace tileweave

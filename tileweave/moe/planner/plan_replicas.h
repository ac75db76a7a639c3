// plan_replicas: who computes which block of rows. The planner itself.
//
// A pure function of the counts and the options: every rank calls it with the same words and gets
// the same plan. Integers only, no allocation, no recursion, every loop bounded. Checks nothing:
// callers on the host use ReplicaPlanner. Never changes which experts a token uses.
#pragma once

#include <cstdint>

#include "tileweave/moe/planner/planner_options.h"
#include "tileweave/moe/planner/workspace.h"

namespace tileweave {

/// What a plan comes to; loads in blocks, times in 1/kTimeUnit of a block's time.
struct PlanSummary {
  std::int32_t fair_share = 0;        // ceil(blocks / ranks): no plan has a smaller largest load
  std::int32_t max_blocks_fixed = 0;  // under fixed placement
  std::int32_t max_blocks = 0;
  std::int32_t num_replicas = 0;
  std::int32_t search = -1;  // of kGreedySearches; -1: another method, or fixed placement
  std::int64_t predicted_fixed = 0;
  std::int64_t predicted = 0;
  bool operator==(const PlanSummary&) const = default;
};

/// The result, in caller-owned words.
struct PlanView {
  std::int32_t* blocks;       // (E, P) blocks of expert e that rank g computes
  std::int32_t* slot_expert;  // (P, s) expert in each replica slot, ascending ids; -1: empty
  PlanSummary* summary;
};

/// `counts` (P, E): rows that source rank p sends to expert e; their sum is below 2^31 -
/// E x block_rows. `workspace`: workspace_words(options.shape) words in any state.
void plan_replicas(const PlannerOptions& options, const std::int32_t* counts,
                   std::int32_t* workspace, const PlanView& plan);

}  // namespace tileweave

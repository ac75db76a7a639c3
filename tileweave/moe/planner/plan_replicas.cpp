#include "tileweave/moe/planner/plan_replicas.h"

#include "tileweave/moe/planner/chain_moves.h"
#include "tileweave/moe/planner/greedy_searches.h"
#include "tileweave/moe/planner/reduction_pruning.h"
#include "tileweave/moe/planner/refinement.h"
#include "tileweave/moe/planner/replicate_and_pack.h"
#include "tileweave/moe/planner/threshold_bisection.h"

namespace tileweave {
namespace {

/// Rows, blocks and gaps of each expert; returns the fair share.
std::int32_t count_blocks(const PlannerShape& shape, const std::int32_t* counts,
                          const PlannerWorkspace& at) {
  for (std::int32_t e = 0; e < shape.num_experts; ++e) at.expert_rows[e] = 0;
  for (std::int32_t p = 0; p < shape.num_ranks; ++p) {
    const std::int32_t* of_source = counts + static_cast<std::int64_t>(p) * shape.num_experts;
    for (std::int32_t e = 0; e < shape.num_experts; ++e) at.expert_rows[e] += of_source[e];
  }
  std::int32_t total = 0;
  for (std::int32_t e = 0; e < shape.num_experts; ++e) {
    const std::int32_t blocks = (at.expert_rows[e] + shape.block_rows - 1) / shape.block_rows;
    at.expert_blocks[e] = blocks;
    at.expert_gap[e] = blocks * shape.block_rows - at.expert_rows[e];
    total += blocks;
  }
  return (total + shape.num_ranks - 1) / shape.num_ranks;
}

struct Planning {
  const PlannerOptions& options;
  const PlannerWorkspace& workspace;
  PlanSummary& summary;

  /// The best of four searches into workspace.best: smallest largest load, then fewest replicas,
  /// then the earliest search.
  void search_all() const {
    const Placement &best = workspace.best, &current = workspace.current;
    std::int32_t best_load = 0, best_replicas = 0;
    for (std::int32_t i = 0; i < 4; ++i) {
      current.reset(workspace.expert_blocks);
      search(kGreedySearches[i], summary.fair_share, current, workspace.rank_scratch);
      const std::int32_t load = current.max_load(), replicas = current.num_replicas();
      if (i > 0 && (load > best_load || (load == best_load && replicas >= best_replicas))) continue;
      best.copy_from(current);
      best_load = load;
      best_replicas = replicas;
      summary.search = i;
    }
    if (options.chain_moves == ChainMoves::kOn) {
      chain_moves(summary.fair_share, best, workspace.rank_scratch);
    }
    prune_replicas(workspace, best);
    balance_blocks(workspace, best);
    if (options.refine_by == RefineBy::kRows) balance_rows(workspace, best);
  }

  void place() const {
    switch (options.method) {
      case PlanMethod::kSearches:
        return search_all();
      case PlanMethod::kBisection:
        return bisect_threshold(summary.fair_share, workspace);
      case PlanMethod::kPacking:
        return replicate_and_pack(workspace);
    }
  }

  /// Rows of a pruned placement once more, unless that makes it slower.
  void balance_pruned() const {
    if (options.refine_by != RefineBy::kRows) return;
    workspace.current.copy_from(workspace.best);
    balance_rows(workspace, workspace.best);
    if (time_of(workspace.best) > time_of(workspace.current)) {
      workspace.best.copy_from(workspace.current);
    }
  }

  /// A.2: unless pruning makes C strictly smaller than that of fixed placement, no replicas.
  void reduce_replicas() const {
    prune_for_reduction(workspace.best, options.lambda);
    balance_pruned();
    if (time_of(workspace.best) >= summary.predicted_fixed) keep_fixed();
  }

  /// Replicas only where the predicted time falls by more than the slack; of the plan with all of
  /// them and the one without those that cost more than they bring, the faster.
  void pass_gate() const {
    const Placement &best = workspace.best, &pruned = workspace.current;
    pruned.copy_from(best);
    prune_for_reduction(pruned, options.lambda);
    if (time_of(pruned) < time_of(best)) {
      best.copy_from(pruned);
      balance_pruned();
    }
    if (time_of(best) * kSlackUnit >= summary.predicted_fixed * (kSlackUnit - options.slack)) {
      keep_fixed();
    }
  }

  std::int64_t time_of(const Placement& placement) const {
    return predicted_time(placement, options.lambda);
  }

  void keep_fixed() const {
    workspace.best.reset(workspace.expert_blocks);
    summary.search = -1;
  }
};

void write(const PlannerShape& shape, const Placement& from, const PlanView& plan) {
  const std::int64_t num_blocks = static_cast<std::int64_t>(shape.num_experts) * shape.num_ranks;
  for (std::int64_t i = 0; i < num_blocks; ++i) plan.blocks[i] = from.blocks[i];
  for (std::int32_t g = 0; g < shape.num_ranks; ++g) {
    std::int32_t* slots = plan.slot_expert + static_cast<std::int64_t>(g) * shape.num_slots;
    std::int32_t used = 0;
    const std::int32_t first = shape.first_owned(g), end = first + shape.num_owned(g);
    for (std::int32_t e = 0; e < shape.num_experts && used < from.replicas[g]; ++e) {
      if (from.of(e, g) > 0 && (e < first || e >= end)) slots[used++] = e;
    }
    for (; used < shape.num_slots; ++used) slots[used] = -1;
  }
}

}  // namespace

void plan_replicas(const PlannerOptions& options, const std::int32_t* counts, std::int32_t* words,
                   const PlanView& plan) {
  const PlannerWorkspace workspace = PlannerWorkspace::at(words, options.shape);
  PlanSummary& summary = *plan.summary;
  summary = {};
  summary.fair_share = count_blocks(options.shape, counts, workspace);
  workspace.best.reset(workspace.expert_blocks);
  summary.max_blocks_fixed = workspace.best.max_load();
  summary.predicted_fixed = predicted_time(workspace.best, options.lambda);
  const Planning planning{options, workspace, summary};
  if (options.shape.num_slots > 0) {
    planning.place();
    if (options.objective == PlanObjective::kReductionAware) planning.reduce_replicas();
    if (options.gate == PlanGate::kPredictedTime) planning.pass_gate();
  }
  if (workspace.best.num_replicas() == 0) summary.search = -1;
  summary.max_blocks = workspace.best.max_load();
  summary.num_replicas = workspace.best.num_replicas();
  summary.predicted = predicted_time(workspace.best, options.lambda);
  write(options.shape, workspace.best, plan);
}

}  // namespace tileweave

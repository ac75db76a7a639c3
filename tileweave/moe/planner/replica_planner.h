// ReplicaPlanner: plan_replicas with its memory, for callers on the host. All checks are here.
//
//   ReplicaPlanner planner(tuned_preset(shape_with_default_slots(8, 256),
//   PlanObjective::kLoadOnly)); const ReplicaPlan& plan = planner.plan(counts);   // (P, E), the
//   same on every rank
//
// Allocates when it is made, never in plan(). The plan lives until the next call. Not thread safe.
// Throws Error for options that make no sense and for counts that are negative, of another shape
// or too many.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/moe/planner/plan_replicas.h"

namespace tileweave {

struct ReplicaPlan {
  PlannerShape shape;
  std::vector<std::int32_t> blocks;       // (E, P)
  std::vector<std::int32_t> slot_expert;  // (P, s), ascending; -1: empty
  PlanSummary summary;

  std::int32_t of(std::int32_t expert, std::int32_t rank) const {
    return blocks[static_cast<std::size_t>(expert) * static_cast<std::size_t>(shape.num_ranks) +
                  static_cast<std::size_t>(rank)];
  }
  std::span<const std::int32_t> slots(std::int32_t rank) const {
    const auto count = static_cast<std::size_t>(shape.num_slots);
    return std::span(slot_expert).subspan(static_cast<std::size_t>(rank) * count, count);
  }
  bool operator==(const ReplicaPlan&) const = default;
};

class ReplicaPlanner {
 public:
  explicit ReplicaPlanner(const PlannerOptions& options);

  const PlannerOptions& options() const { return options_; }
  const ReplicaPlan& plan(std::span<const std::int32_t> counts);

 private:
  PlannerOptions options_;
  std::vector<std::int32_t> workspace_;
  ReplicaPlan plan_;
};

}  // namespace tileweave

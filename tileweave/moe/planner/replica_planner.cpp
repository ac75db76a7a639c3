#include "tileweave/moe/planner/replica_planner.h"

#include <fmt/format.h>

#include <limits>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

void check_counts(const PlannerShape& shape, std::span<const std::int32_t> counts) {
  constexpr const char* kPlan = "plan replicas";
  const std::size_t experts = static_cast<std::size_t>(shape.num_experts);
  const std::size_t expected = static_cast<std::size_t>(shape.num_ranks) * experts;
  if (counts.size() != expected) {
    throw Error(kPlan,
                fmt::format("{} counts, one per rank and expert ({} x {})", expected,
                            shape.num_ranks, shape.num_experts),
                std::to_string(counts.size()));
  }
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0) {
      throw Error(
          kPlan, fmt::format("counts of at least 0 (rank {}, expert {})", i / experts, i % experts),
          std::to_string(counts[i]));
    }
    sum += counts[i];
  }
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() -
                            static_cast<std::int64_t>(shape.num_experts) * shape.block_rows;
  if (sum > most) {
    throw Error(kPlan, fmt::format("at most {} rows in all", most), std::to_string(sum));
  }
}

}  // namespace

ReplicaPlanner::ReplicaPlanner(const PlannerOptions& options) : options_(options) {
  check(options);
  const PlannerShape& shape = options.shape;
  workspace_.resize(static_cast<std::size_t>(workspace_words(shape)));
  plan_.shape = shape;
  const auto ranks = static_cast<std::size_t>(shape.num_ranks);
  plan_.blocks.resize(static_cast<std::size_t>(shape.num_experts) * ranks);
  plan_.slot_expert.resize(ranks * static_cast<std::size_t>(shape.num_slots));
}

const ReplicaPlan& ReplicaPlanner::plan(std::span<const std::int32_t> counts) {
  check_counts(options_.shape, counts);
  plan_replicas(options_, counts.data(), workspace_.data(),
                {plan_.blocks.data(), plan_.slot_expert.data(), &plan_.summary});
  return plan_;
}

}  // namespace tileweave

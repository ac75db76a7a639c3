// Plans over the 147 configurations: how much of the excess they take away, and that the gate never
// lets a plan be slower than fixed placement.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/moe/planner/row_assignment.h"
#include "tileweave/moe/workload/configurations.h"
#include "tileweave/moe/workload/metrics.h"

namespace tileweave {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

PlannerOptions options_for(const WorkloadConfiguration& c, PlanObjective objective) {
  PlannerOptions options =
      tuned_preset(shape_with_default_slots(c.num_ranks, c.num_experts), objective);
  options.gate = PlanGate::kOff;
  options.lambda = 12 * kTimeUnit;
  return options;
}

/// Median eta of the seeds of each configuration that is not balanced and has enough tokens.
std::vector<double> etas(PlanObjective objective, std::int32_t least_tokens) {
  std::vector<double> all;
  for (const WorkloadConfiguration& c : evaluation_configurations()) {
    if (c.is_balanced() || c.tokens_per_rank < least_tokens) continue;
    ReplicaPlanner planner(options_for(c, objective));
    std::vector<double> of_seeds;
    for (const std::uint64_t seed : kWorkloadSeeds) {
      const CountMatrix counts = counts_of(c, seed);
      const auto rows = rows_by_rank(planner.plan(counts.counts), counts.counts);
      of_seeds.push_back(removed_excess(fixed_rows_by_rank(counts), rows).value());
    }
    all.push_back(median(of_seeds));
  }
  return all;
}

TEST(Evaluation, LoadOnlyTakesAwayTheExcess) {
  const std::vector<double> all = etas(PlanObjective::kLoadOnly, 0);
  EXPECT_EQ(all.size(), 126U);
  EXPECT_GE(median(all), 0.975);
  EXPECT_GE(median(etas(PlanObjective::kLoadOnly, 8192)), 0.993);
}

TEST(Evaluation, ReductionAwareWithLambdaTwelveTakesAwayTheExcessOfLargeLoads) {
  EXPECT_GE(median(etas(PlanObjective::kReductionAware, 8192)), 0.99);
}

TEST(Evaluation, EveryPlanReachesTheFairShareOfBlocks) {
  for (const WorkloadConfiguration& c : evaluation_configurations()) {
    ReplicaPlanner planner(options_for(c, PlanObjective::kLoadOnly));
    for (const std::uint64_t seed : kWorkloadSeeds) {
      const PlanSummary& summary = planner.plan(counts_of(c, seed).counts).summary;
      ASSERT_EQ(summary.max_blocks, summary.fair_share) << to_string(c) << ", seed " << seed;
    }
  }
}

TEST(Evaluation, WithTheGateNoPlanIsPredictedSlowerThanFixedPlacement) {
  std::int64_t kept_fixed = 0, faster = 0;
  for (const WorkloadConfiguration& c : evaluation_configurations()) {
    for (const PlanObjective objective :
         {PlanObjective::kLoadOnly, PlanObjective::kReductionAware}) {
      const PlannerShape shape = shape_with_default_slots(c.num_ranks, c.num_experts);
      ReplicaPlanner planner(tuned_preset(shape, objective));
      for (const std::uint64_t seed : kWorkloadSeeds) {
        const PlanSummary& summary = planner.plan(counts_of(c, seed).counts).summary;
        ASSERT_LE(summary.predicted, summary.predicted_fixed) << to_string(c) << ", seed " << seed;
        (summary.num_replicas == 0 ? kept_fixed : faster) += 1;
        if (c.is_balanced()) {
          ASSERT_EQ(summary.num_replicas, 0) << to_string(c);
        }
      }
    }
  }
  EXPECT_GT(kept_fixed, 0);
  EXPECT_GT(faster, kept_fixed);
}

}  // namespace
}  // namespace tileweave

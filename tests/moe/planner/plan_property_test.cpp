// What holds for every plan on random histograms: 50 000 here, 1 000 000 in the Long suite.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/moe/planner/plan_checks.h"
#include "tileweave/moe/planner/reduction_pruning.h"

namespace tileweave {
namespace {

PlannerOptions random_options(RandomCounts& random) {
  const PlannerShape shape = random.make_shape();
  const PlanObjective objective =
      random.below(2) == 0 ? PlanObjective::kLoadOnly : PlanObjective::kReductionAware;
  PlannerOptions options =
      random.below(3) == 0 ? paper_preset(shape, objective) : tuned_preset(shape, objective);
  if (random.below(2) == 0) options.gate = PlanGate::kOff;
  if (random.below(2) == 0) options.lambda = static_cast<std::int32_t>(random.below(5000));
  if (random.below(4) == 0) {
    options.method = random.below(2) == 0 ? PlanMethod::kBisection : PlanMethod::kPacking;
  }
  return options;
}

/// The same matrix planned by another rank: another object, another state of its memory.
void expect_same_from_another_rank(ReplicaPlanner& used, const PlannerOptions& options,
                                   const std::vector<std::int32_t>& counts,
                                   const ReplicaPlan& expected) {
  ReplicaPlanner fresh(options);
  ASSERT_TRUE(fresh.plan(counts) == expected);
  ASSERT_TRUE(used.plan(counts) == expected) << "on a second run";
}

void check_histogram(std::uint64_t seed) {
  RandomCounts random(seed);
  const PlannerOptions options = random_options(random);
  SCOPED_TRACE("seed " + std::to_string(seed) + ", " + to_string(options));
  const std::vector<std::int32_t> other = random.make(options.shape);
  const std::vector<std::int32_t> counts = random.make(options.shape);
  ReplicaPlanner planner(options);
  planner.plan(other);  // leaves its words in the workspace
  const ReplicaPlan plan = planner.plan(counts);
  ASSERT_EQ(violation_of(plan, counts), "");
  const PlanSummary& sum = plan.summary;
  ASSERT_GE(sum.max_blocks, sum.fair_share);
  if (options.method == PlanMethod::kSearches) {
    const bool by_time = options.objective == PlanObjective::kReductionAware ||
                         options.gate == PlanGate::kPredictedTime;
    ASSERT_LE(sum.max_blocks, sum.max_blocks_fixed) << "worse than fixed placement";
    if (by_time) {
      ASSERT_LE(sum.predicted, sum.predicted_fixed) << "slower than fixed placement";
    }
  }
  if (options.shape.num_slots == 0 || options.shape.num_ranks == 1) {
    ASSERT_EQ(sum.num_replicas, 0);
    ASSERT_EQ(sum.max_blocks, sum.max_blocks_fixed);
    ASSERT_EQ(sum.predicted, sum.predicted_fixed);
  }
  expect_same_from_another_rank(planner, options, counts, plan);
}

void check_histograms(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    check_histogram(seed);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(PlanProperty, HoldsOnFiftyThousandRandomHistograms) {
  check_histograms(1, 50'000);
}

TEST(LongPlanProperty, HoldsOnAMillionRandomHistograms) {
  check_histograms(100'000, 1'000'000);
}

TEST(PlanProperty, RowsGoToTheRankThatTheirBlockIsAssignedTo) {
  // Every assignment one by one, against the ranges.
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomCounts random(seed);
    const PlannerOptions options = random_options(random);
    const std::vector<std::int32_t> counts = random.make(options.shape);
    ReplicaPlanner planner(options);
    const ReplicaPlan& plan = planner.plan(counts);
    std::int32_t source = -1;
    std::vector<RowPlacer> placers;
    for (std::int32_t p = 0; p < options.shape.num_ranks; ++p)
      placers.emplace_back(plan, counts, p);
    for (const RowRange& range : row_ranges(plan, counts)) {
      source = range.source;
      for (std::int32_t i = 0; i < range.count; ++i) {
        RowPlace expected = range.place;
        expected.row += i;
        ASSERT_TRUE(placers[static_cast<std::size_t>(source)].next(range.expert) == expected);
      }
    }
  }
}

}  // namespace
}  // namespace tileweave

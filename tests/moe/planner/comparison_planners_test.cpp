// The two planners for comparison, by hand: they must do what their descriptions say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tileweave/moe/planner/replica_planner.h"

namespace tileweave {
namespace {

using Words = std::vector<std::int32_t>;

ReplicaPlan plan_of(PlanMethod method, const PlannerShape& shape, const Words& expert_rows) {
  PlannerOptions options = paper_preset(shape, PlanObjective::kLoadOnly);
  options.method = method;
  Words counts(static_cast<std::size_t>(shape.num_ranks * shape.num_experts));
  std::copy(expert_rows.begin(), expert_rows.end(), counts.begin());
  return ReplicaPlanner(options).plan(counts);
}

TEST(ThresholdBisection, FindsTheSmallestFeasibleThreshold) {
  // Blocks of 1024 rows, so one block is enough for a replica: 9, 1, 2 blocks; fair share 4.
  const ReplicaPlan plan =
      plan_of(PlanMethod::kBisection, {3, 3, 1, 1024}, {9 * 1024, 1024, 2 * 1024});
  EXPECT_EQ(plan.summary.max_blocks, 4);
  EXPECT_EQ(plan.blocks, (Words{4, 3, 2, 0, 1, 0, 0, 0, 2}));
  EXPECT_EQ(plan.summary.search, -1);
}

TEST(ThresholdBisection, OpensNoReplicaForFewerThan1024RowsAndLeavesTheOwnerABlock) {
  // Blocks of 256 rows: a replica takes 4 at least. 10 : 4 could be 7 : 7, but 6 : 8 is what 4
  // give.
  EXPECT_EQ(plan_of(PlanMethod::kBisection, {2, 2, 1, 256}, {2560, 1024}).blocks,
            (Words{6, 4, 0, 4}));
  // 5 : 3: a replica of 4 would be worse than none.
  EXPECT_EQ(plan_of(PlanMethod::kBisection, {2, 2, 1, 256}, {1280, 768}).blocks,
            (Words{5, 0, 0, 3}));
  // The owner keeps one block of its expert even where another one weighs on it.
  const ReplicaPlan plan =
      plan_of(PlanMethod::kBisection, {2, 4, 1, 1024}, {6 * 1024, 5 * 1024, 0, 0});
  EXPECT_EQ(plan.blocks, (Words{1, 5, 5, 0, 0, 0, 0, 0}));
}

TEST(ReplicateAndPack, GivesTheFreeSlotsToTheMostCrowdedExpertsAndPacksTheLargestFirst) {
  // 12, 4, 0 blocks, a slot on each of 3 ranks. Copies: expert 0 (12), again (6); its third copy is
  // the last it may have on 3 ranks; then expert 1 (4). Shares 4 and 2; owners keep 4 and 2. The
  // two of 4 go to rank 2 (empty) and rank 1, the one of 2 to rank 0.
  const ReplicaPlan plan = plan_of(PlanMethod::kPacking, {3, 3, 1, 1}, {12, 4, 0});
  EXPECT_EQ(plan.blocks, (Words{4, 4, 4, 2, 2, 0, 0, 0, 0}));
  EXPECT_EQ(plan.summary.max_blocks, 6);
}

TEST(ReplicateAndPack, KeepsAtTheOwnerWhatNobodyCanTake) {
  const ReplicaPlan plan = plan_of(PlanMethod::kPacking, {2, 2, 0, 1}, {9, 1});
  EXPECT_EQ(plan.blocks, (Words{9, 0, 0, 1}));
}

}  // namespace
}  // namespace tileweave

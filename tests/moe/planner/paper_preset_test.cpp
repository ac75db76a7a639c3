// Preset `paper`, rule by rule, against cases worked out by hand. Section numbers are those of the
// MegaFlux paper, 3.1 and Appendix A.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/moe/planner/greedy_searches.h"
#include "tileweave/moe/planner/reduction_pruning.h"
#include "tileweave/moe/planner/refinement.h"
#include "tileweave/moe/planner/row_assignment.h"

namespace tileweave {
namespace {

using Words = std::vector<std::int32_t>;

/// A placement that a test writes down, with workspace around it.
class Table {
 public:
  explicit Table(const PlannerShape& shape, const Words& expert_blocks)
      : words_(static_cast<std::size_t>(workspace_words(shape))),
        workspace(PlannerWorkspace::at(words_.data(), shape)),
        at(workspace.best) {
    at.reset(expert_blocks.data());
  }

  /// Blocks by expert, then rank.
  Words blocks() const {
    return Words(at.blocks, at.blocks + at.shape.num_experts * at.shape.num_ranks);
  }
  Words load() const { return Words(at.load, at.load + at.shape.num_ranks); }

 private:
  Words words_;

 public:
  const PlannerWorkspace workspace;
  const Placement& at;
};

/// Counts with all rows from rank 0.
Words counts_of(const PlannerShape& shape, const Words& expert_rows) {
  Words counts(static_cast<std::size_t>(shape.num_ranks * shape.num_experts));
  std::copy(expert_rows.begin(), expert_rows.end(), counts.begin());
  return counts;
}

PlannerShape shape_of(std::int32_t ranks, std::int32_t experts, std::int32_t slots,
                      std::int32_t block_rows = 1) {
  return {ranks, experts, slots, block_rows};
}

TEST(PaperPreset, Section31CutsAnExpertsRowsIntoBlocksWithOnePartialBlockHoweverManyReplicas) {
  // 0, 1, 127, 128, 129 and 1000 rows are 0, 1, 1, 1, 2 and 8 blocks of 128.
  const PlannerShape shape = shape_of(2, 6, 2, 128);
  ReplicaPlanner planner(paper_preset(shape, PlanObjective::kLoadOnly));
  const Words counts = counts_of(shape, {0, 1, 127, 128, 129, 1000});
  const ReplicaPlan& plan = planner.plan(counts);
  // Owners: 0 + 1 + 1 = 2 blocks and 1 + 2 + 8 = 11; fair share ceil(13 / 2) = 7.
  EXPECT_EQ(plan.summary.fair_share, 7);
  EXPECT_EQ(plan.summary.max_blocks_fixed, 11);
  EXPECT_EQ(plan.blocks, (Words{0, 0, 1, 0, 1, 0, 0, 1, 0, 2, 4, 4}));
  EXPECT_EQ(plan.summary.max_blocks, 7);
  // The partial block of expert 5 (1000 = 7 x 128 + 104) is its last: on rank 0, the replica.
  EXPECT_EQ(rows_by_rank(plan, counts),
            (std::vector<std::int64_t>{1 + 127 + 3 * 128 + 104, 128 + 129 + 4 * 128}));
}

TEST(PaperPreset, SectionA1StartsFromOwnersWhoOwnContiguousRangesTheFirstOnesOneMore) {
  const PlannerShape shape = shape_of(3, 8, 0);
  Words owners;
  for (std::int32_t e = 0; e < 8; ++e) owners.push_back(shape.owner_of(e));
  EXPECT_EQ(owners, (Words{0, 0, 0, 1, 1, 1, 2, 2}));
  EXPECT_EQ((Words{shape.first_owned(0), shape.first_owned(1), shape.first_owned(2)}),
            (Words{0, 3, 6}));
  ReplicaPlanner planner(paper_preset(shape, PlanObjective::kLoadOnly));
  EXPECT_EQ(planner.plan(counts_of(shape, {1, 2, 3, 4, 5, 6, 7, 8})).summary.max_blocks, 15);
}

TEST(PaperPreset, SectionA1AReplicaGoesToTheLeastLoadedRankBelowTheFairShareWithAFreeSlot) {
  // Loads 10, 1, 4, 0: fair share 4 = ceil(15 / 4). Rank 3 is the least loaded, but gets no slot.
  Table table(shape_of(4, 4, 1), {10, 1, 4, 0});
  table.at.replicas[3] = 1;  // as if a slot were taken
  search({DonorPriority::kLoad, FanOut::kManyCopies}, 4, table.at, table.workspace.rank_scratch);
  // Rank 1 takes 4 - 1 = 3; rank 2 is at the fair share; nobody is left.
  EXPECT_EQ(table.load(), (Words{7, 4, 4, 0}));
}

TEST(PaperPreset, SectionA1EqualLoadsGoToTheLowestRank) {
  Table table(shape_of(3, 3, 1), {5, 1, 1});  // fair share 3
  search({DonorPriority::kLoad, FanOut::kOneCopy}, 3, table.at, table.workspace.rank_scratch);
  EXPECT_EQ(table.blocks(), (Words{3, 2, 0, 0, 1, 0, 0, 0, 1}));
}

TEST(PaperPreset, SectionA1OneCopyFanOutGivesToOneReceiverPerRoundAndStopsAfterBudgetPlusTwo) {
  // Fair share ceil(30 / 6) = 5; rank 0 has 30 and five receivers take 5 each. With one slot there
  // are 3 rounds, so one copy each round reaches three of them; many copies reach all in one.
  Table one(shape_of(6, 6, 1), {30, 0, 0, 0, 0, 0});
  search({DonorPriority::kLoad, FanOut::kOneCopy}, 5, one.at, one.workspace.rank_scratch);
  EXPECT_EQ(one.load(), (Words{15, 5, 5, 5, 0, 0}));
  Table many(shape_of(6, 6, 1), {30, 0, 0, 0, 0, 0});
  search({DonorPriority::kLoad, FanOut::kManyCopies}, 5, many.at, many.workspace.rank_scratch);
  EXPECT_EQ(many.load(), (Words{5, 5, 5, 5, 5, 5}));
}

TEST(PaperPreset, SectionA1DonorPriorityDecidesWhoIsServedFirst) {
  // Ranks 0 (4 + 4 = 8) and 1 (6 + 0) are above the fair share of 5 = ceil(15 / 3); rank 2 has room
  // for 4 and one slot. By load rank 0 comes first and gives 3 of expert 0.
  const Words blocks = {4, 4, 6, 0, 1, 0};
  Table load(shape_of(3, 6, 1), blocks);
  search({DonorPriority::kLoad, FanOut::kManyCopies}, 5, load.at, load.workspace.rank_scratch);
  EXPECT_EQ(load.load(), (Words{5, 6, 4}));
  // By hottest expert rank 1 (6 blocks of expert 2) comes first and takes the slot for 1 block.
  Table hottest(shape_of(3, 6, 1), blocks);
  search({DonorPriority::kHottestExpert, FanOut::kManyCopies}, 5, hottest.at,
         hottest.workspace.rank_scratch);
  EXPECT_EQ(hottest.load(), (Words{8, 5, 2}));
}

TEST(PaperPreset, SectionA1ADonorGivesItsHottestExpertAndNoMoreThanItsExcess) {
  Table table(shape_of(2, 4, 2), {2, 5, 1, 0});  // loads 7, 1; fair share 4
  search({DonorPriority::kLoad, FanOut::kManyCopies}, 4, table.at, table.workspace.rank_scratch);
  EXPECT_EQ(table.blocks(), (Words{2, 0, 2, 3, 0, 1, 0, 0}));
  // Of equally hot ones the lowest id; a second expert follows when the first is used up.
  Table equal(shape_of(2, 4, 2), {4, 4, 0, 0});
  search({DonorPriority::kLoad, FanOut::kManyCopies}, 4, equal.at, equal.workspace.rank_scratch);
  EXPECT_EQ(equal.blocks(), (Words{0, 4, 4, 0, 0, 0, 0, 0}));
}

TEST(PaperPreset, SectionA1ARankThatHoldsAReplicaTakesMoreOfItWithoutAnotherSlot) {
  // Rank 2 got 1 block of expert 0 before; its slot is used, yet it may take more of expert 0.
  Table table(shape_of(3, 3, 1), {9, 3, 0});
  table.at.move(0, 0, 2, 1);
  search({DonorPriority::kLoad, FanOut::kOneCopy}, 4, table.at, table.workspace.rank_scratch);
  EXPECT_EQ(table.blocks(), (Words{4, 1, 4, 0, 3, 0, 0, 0, 0}));
}

TEST(PaperPreset, SectionA1TheSearchWithTheSmallestLargestLoadIsChosenThenFewestReplicas) {
  // The six-rank case above: only many copies reach the fair share.
  ReplicaPlanner six(paper_preset(shape_of(6, 6, 1), PlanObjective::kLoadOnly));
  const ReplicaPlan& plan = six.plan(counts_of(six.options().shape, {30, 0, 0, 0, 0, 0}));
  EXPECT_EQ(plan.summary.search, 1);
  EXPECT_EQ(plan.summary.max_blocks, 5);
  // Where all four are equal it is the first.
  ReplicaPlanner two(paper_preset(shape_of(2, 2, 1), PlanObjective::kLoadOnly));
  EXPECT_EQ(two.plan(counts_of(two.options().shape, {4, 0})).summary.search, 0);
  // Loads 0, 6, 3, 1, 0 with fair share 2. One copy a round: expert 1 goes to ranks 0, 3 and 4, as
  // expert 2 has taken half of rank 4 in between: 4 replicas. Many copies: expert 1 to ranks 0 and
  // 4, expert 2 to rank 3: 3 replicas, the same largest load.
  ReplicaPlanner five(paper_preset(shape_of(5, 5, 2), PlanObjective::kLoadOnly));
  const ReplicaPlan& fewer = five.plan(counts_of(five.options().shape, {0, 6, 3, 1, 0}));
  EXPECT_EQ(fewer.summary.search, 1);
  EXPECT_EQ(fewer.summary.max_blocks, 2);
  EXPECT_EQ(fewer.slot_expert, (Words{1, -1, -1, -1, -1, -1, 2, -1, 1, -1}));
}

TEST(PaperPreset, SectionA1PruningDropsReplicasWhoseBlocksFitElsewhereWithoutRaisingTheLoad) {
  // Loads 4, 6, 2. Expert 0 (owner 0): 2 of its blocks on rank 1, 1 on rank 2. The smaller goes
  // back to its owner (4 + 1 <= 6); then the 2 on rank 1 do not fit (5 + 2 > 6).
  Table table(shape_of(3, 3, 2), {7, 4, 1});
  table.at.move(0, 0, 1, 2);
  table.at.move(0, 0, 2, 1);
  ASSERT_EQ(table.load(), (Words{4, 6, 2}));
  prune_replicas(table.workspace, table.at);
  EXPECT_EQ(table.blocks(), (Words{5, 2, 0, 0, 4, 0, 0, 0, 1}));
  EXPECT_EQ(table.at.num_replicas(), 1);
  // Where the owner is full, the least loaded other holder takes them.
  Table full(shape_of(3, 3, 2), {9, 3, 1});
  full.at.move(0, 0, 1, 1);
  full.at.move(0, 0, 2, 2);
  ASSERT_EQ(full.load(), (Words{6, 4, 3}));
  prune_replicas(full.workspace, full.at);
  EXPECT_EQ(full.blocks(), (Words{6, 0, 3, 0, 3, 0, 0, 0, 1}));
}

TEST(PaperPreset, SectionA1SingleBlocksMoveBetweenRanksThatShareAnExpert) {
  // Loads 9, 1 and 5: expert 0 is shared by 0 and 1: 4 of 8 single blocks go over.
  Table table(shape_of(3, 3, 1), {10, 0, 5});
  table.at.move(0, 0, 1, 1);
  balance_blocks(table.workspace, table.at);
  EXPECT_EQ(table.load(), (Words{5, 5, 5}));
  EXPECT_EQ(table.blocks(), (Words{5, 5, 0, 0, 0, 0, 0, 0, 5}));
  EXPECT_EQ(table.at.num_replicas(), 1) << "no replica is opened";
  // A difference of one block is left alone.
  Table near(shape_of(2, 2, 1), {5, 3});
  near.at.move(0, 0, 1, 1);
  balance_blocks(near.workspace, near.at);
  EXPECT_EQ(near.load(), (Words{4, 4}));
  near.at.move(0, 1, 0, 1);
  balance_blocks(near.workspace, near.at);
  EXPECT_EQ(near.load(), (Words{5, 3})) << "without a replica nothing is shared";
}

constexpr std::int32_t kLambda = 12 * kTimeUnit;

TEST(PaperPreset, SectionA2CountsTwelveBlocksForEachReplicaOfTheOwner) {
  Table table(shape_of(3, 3, 1), {40, 3, 0});
  table.at.move(0, 0, 1, 13);
  table.at.move(0, 0, 2, 10);
  // 17 + 2 x 12 = 41 on the owner, 16 and 10 elsewhere.
  EXPECT_EQ(predicted_time(table.at, kLambda), 41 * kTimeUnit);
  EXPECT_EQ(paper_preset(shape_of(3, 3, 1), PlanObjective::kReductionAware).lambda, kLambda);
  EXPECT_EQ(paper_preset(shape_of(3, 3, 1), PlanObjective::kReductionAware).gate, PlanGate::kOff);
}

TEST(PaperPreset, SectionA2DropsReplicasBelowLambdaAtTheRankThatAttainsC) {
  Table table(shape_of(3, 3, 1), {40, 3, 0});
  table.at.move(0, 0, 1, 13);
  table.at.move(0, 0, 2, 10);
  prune_for_reduction(table.at, kLambda);
  // The 10 go back (27 + 12 = 39 < 41); 13 is not below lambda.
  EXPECT_EQ(table.blocks(), (Words{27, 13, 0, 0, 3, 0, 0, 0, 0}));
  // Twelve is not below twelve either.
  Table twelve(shape_of(2, 2, 1), {30, 0});
  twelve.at.move(0, 0, 1, 12);
  prune_for_reduction(twelve.at, kLambda);
  EXPECT_EQ(twelve.load(), (Words{18, 12}));
}

TEST(PaperPreset, SectionA2StopsWhenTheRankThatAttainsCHasNoSuchReplica) {
  // C is attained by rank 1 (50 blocks, no replicas), so rank 0's replica of 5 blocks stays.
  Table table(shape_of(3, 3, 1), {20, 50, 0});
  table.at.move(0, 0, 2, 5);
  prune_for_reduction(table.at, kLambda);
  EXPECT_EQ(table.load(), (Words{15, 50, 5}));
}

TEST(PaperPreset, SectionA2RevertsToFixedPlacementUnlessCIsStrictlySmaller) {
  // 2 ranks, 20 and 0 blocks: load-only 10 : 10; C = 10 + 12 = 22 > 20, the replica is below
  // lambda.
  const PlannerShape shape = shape_of(2, 2, 1);
  ReplicaPlanner backward(paper_preset(shape, PlanObjective::kReductionAware));
  const ReplicaPlan& small = backward.plan(counts_of(shape, {20, 0}));
  EXPECT_EQ(small.blocks, (Words{20, 0, 0, 0}));
  EXPECT_EQ(small.summary.search, -1);
  // 24: load-only 12 : 12, 12 is not below lambda, but C = 24 is not smaller than 24.
  EXPECT_EQ(backward.plan(counts_of(shape, {24, 0})).summary.num_replicas, 0);
  // 26: C = 13 + 12 = 25 < 26.
  const ReplicaPlan& large = backward.plan(counts_of(shape, {26, 0}));
  EXPECT_EQ(large.blocks, (Words{13, 13, 0, 0}));
  EXPECT_EQ(large.summary.predicted, 25 * kTimeUnit);
  EXPECT_EQ(large.summary.predicted_fixed, 26 * kTimeUnit);
}

TEST(PaperPreset, SectionA2PruningMayRaiseTheLargestComputeLoad) {
  // Load-only: 20 : 20 : 20 with replicas of 20 and 8. C is 20 + 24 = 44; without the 8 it is 40.
  const PlannerShape shape = shape_of(3, 3, 1);
  const Words counts = counts_of(shape, {48, 0, 12});
  ReplicaPlanner forward(paper_preset(shape, PlanObjective::kLoadOnly));
  EXPECT_EQ(forward.plan(counts).summary.max_blocks, 20);
  ReplicaPlanner backward(paper_preset(shape, PlanObjective::kReductionAware));
  EXPECT_EQ(backward.plan(counts).blocks, (Words{28, 20, 0, 0, 0, 0, 0, 0, 12}));
  EXPECT_EQ(backward.plan(counts).summary.max_blocks, 28);
}

TEST(PaperPreset, SectionA2InferenceDoesNotPruneForReduction) {
  const PlannerShape shape = shape_of(2, 2, 1);
  ReplicaPlanner forward(paper_preset(shape, PlanObjective::kLoadOnly));
  EXPECT_EQ(forward.plan(counts_of(shape, {20, 0})).blocks, (Words{10, 10, 0, 0}));
}

TEST(PaperPreset, SectionA2AssignsRowsByTokenOrderOfSourceOwnerFirstThenAscendingRanks) {
  // Blocks of 2 rows. Sources send 3, 0 and 6 rows to expert 1: blocks 01 23 45 67 8. Its owner,
  // rank 1, keeps two of them, then comes rank 0 with two, then rank 2 with the last, partial one.
  const PlannerShape shape = shape_of(3, 3, 1, 2);
  ReplicaPlan plan{shape, {0, 0, 0, 2, 2, 1, 0, 0, 0}, {1, -1, 1}, {}};
  const Words counts = {0, 3, 0, 0, 0, 0, 0, 6, 0};
  std::string text;
  for (const RowRange& r : row_ranges(plan, counts)) {
    text += "source " + std::to_string(r.source) + " rows " + std::to_string(r.first) + "+" +
            std::to_string(r.count) + " -> rank " + std::to_string(r.place.rank) + " slot " +
            std::to_string(r.place.slot) + " row " + std::to_string(r.place.row) + "\n";
  }
  EXPECT_EQ(text,
            "source 0 rows 0+3 -> rank 1 slot -1 row 0\n"
            "source 2 rows 3+1 -> rank 1 slot -1 row 3\n"
            "source 2 rows 4+4 -> rank 0 slot 0 row 0\n"
            "source 2 rows 8+1 -> rank 2 slot 0 row 0\n");
}

TEST(PaperPreset, SlotsHoldAscendingExpertIds) {
  const PlannerShape shape = shape_of(2, 8, 3);
  ReplicaPlanner planner(paper_preset(shape, PlanObjective::kLoadOnly));
  // Rank 0 has 5, 4, 4, 5 and gives away 9 of 18: all of experts 0 and 3, in the order 0, 3,
  // then 1.
  const ReplicaPlan& plan = planner.plan(counts_of(shape, {2, 4, 6, 6, 0, 0, 0, 0}));
  EXPECT_EQ(plan.slot_expert, (Words{-1, -1, -1, 2, 3, -1}));
  EXPECT_EQ(plan.blocks, (Words{2, 0, 4, 0, 0, 6, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace tileweave

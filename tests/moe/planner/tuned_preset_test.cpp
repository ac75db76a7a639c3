// What preset `tuned` adds: lambda from rates, refinement by rows, chain moves, the gate.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tileweave/moe/planner/chain_moves.h"
#include "tileweave/moe/planner/refinement.h"
#include "tileweave/moe/planner/row_assignment.h"

namespace tileweave {
namespace {

using Words = std::vector<std::int32_t>;

Words counts_of(const PlannerShape& shape, const Words& expert_rows) {
  Words counts(static_cast<std::size_t>(shape.num_ranks * shape.num_experts));
  std::copy(expert_rows.begin(), expert_rows.end(), counts.begin());
  return counts;
}

TEST(TunedPreset, DerivesLambdaFromTheRates) {
  // Forward 2 bytes x 600e12 / (2 x 128 x 380e9) = 12.336 blocks, in 1/256: 3158 (nothing hidden).
  MachineRates rates{.hidden_forward = 0, .hidden_backward = 0};
  EXPECT_EQ(derived_lambda(rates, 128, PlanObjective::kLoadOnly), 3158);
  EXPECT_EQ(derived_lambda(rates, 64, PlanObjective::kLoadOnly), 6316);
  EXPECT_EQ(derived_lambda(rates, 256, PlanObjective::kLoadOnly), 1579);
  // Backward (2 + 4) x 600e12 / (4 x 128 x 380e9) = 18.503.
  EXPECT_EQ(derived_lambda(rates, 128, PlanObjective::kReductionAware), 4737);
  rates.hidden_forward = 750;
  EXPECT_EQ(derived_lambda(rates, 128, PlanObjective::kLoadOnly), 789);
  rates.hidden_forward = 1000;
  EXPECT_EQ(derived_lambda(rates, 128, PlanObjective::kLoadOnly), 0);
  EXPECT_EQ(derived_lambda({.tera_flops = 1'000'000,
                            .link_gigabytes = 1,
                            .weight_bytes = 1'000'000,
                            .hidden_forward = 0},
                           1, PlanObjective::kLoadOnly),
            1 << 30)
      << "the largest lambda there is";
}

TEST(TunedPreset, ChainMovesPassBlocksOnThroughARankInBetween) {
  // Fair share 4. Rank 2's only slot holds expert 0, so rank 1 has nowhere to go; but rank 0 can
  // take 2 of expert 1 and pass 2 of expert 0 on.
  const PlannerShape shape{3, 3, 1, 1};
  Words words(static_cast<std::size_t>(workspace_words(shape)));
  const PlannerWorkspace workspace = PlannerWorkspace::at(words.data(), shape);
  workspace.best.reset(Words{6, 6, 0}.data());
  workspace.best.move(0, 0, 2, 2);
  chain_moves(4, workspace.best, workspace.rank_scratch);
  EXPECT_EQ(Words(workspace.best.blocks, workspace.best.blocks + 9),
            (Words{2, 0, 4, 2, 4, 0, 0, 0, 0}));
}

TEST(TunedPreset, RefinementComparesRowsWithoutRaisingTheBlocks) {
  // Blocks of 10 rows: expert 0 has 37 (a last block of 7), expert 1 has 1. Rank 0 computes 3
  // blocks, rank 1 one and the block of expert 1: 30 and 8 rows. Another block makes it 20 and 18.
  const PlannerShape shape{2, 2, 1, 10};
  Words words(static_cast<std::size_t>(workspace_words(shape)));
  const PlannerWorkspace workspace = PlannerWorkspace::at(words.data(), shape);
  workspace.best.reset(Words{4, 1}.data());
  workspace.best.move(0, 0, 1, 1);
  workspace.expert_gap[0] = 3;
  workspace.expert_gap[1] = 9;
  balance_rows(workspace, workspace.best);
  EXPECT_EQ(Words(workspace.rank_rows, workspace.rank_rows + 2), (Words{20, 18}));
  EXPECT_EQ(Words(workspace.best.load, workspace.best.load + 2), (Words{2, 3}));
  // Now rank 1 has 3 blocks: more would raise the largest number, so nothing moves on.
  balance_rows(workspace, workspace.best);
  EXPECT_EQ(Words(workspace.best.load, workspace.best.load + 2), (Words{2, 3}));
}

TEST(TunedPreset, GateKeepsFixedPlacementUnlessTheTimeFallsByMoreThanTheSlack) {
  // 40 : 0 blocks; planned 20 : 20 with one replica: 20 + lambda.
  const PlannerShape shape{2, 2, 1, 1};
  PlannerOptions options = tuned_preset(shape, PlanObjective::kLoadOnly);
  const auto replicas = [&](std::int32_t lambda_blocks, std::int32_t slack) {
    options.lambda = lambda_blocks * kTimeUnit;
    options.slack = slack;
    return ReplicaPlanner(options).plan(counts_of(shape, {40, 0})).summary.num_replicas;
  };
  EXPECT_EQ(replicas(10, 0), 1);               // 30 < 40
  EXPECT_EQ(replicas(10, kSlackUnit / 4), 0);  // 30 is 40 less a quarter: not more than the slack
  EXPECT_EQ(replicas(10, kSlackUnit / 4 - 1), 1);
  EXPECT_EQ(replicas(19, 0), 1);  // 39
  EXPECT_EQ(replicas(20, 0), 0);  // 40
  options.gate = PlanGate::kOff;
  EXPECT_EQ(replicas(20, 0), 1);
}

TEST(TunedPreset, GateDropsReplicasThatCostMoreThanTheyBring) {
  // 48, 0, 12: replicas of 20 and 8 blocks. With lambda 12 they make 20 + 24; without the 8 it is
  // 40, and 36 once the two holders of expert 0 share its rows evenly.
  const PlannerShape shape{3, 3, 1, 1};
  PlannerOptions options = tuned_preset(shape, PlanObjective::kLoadOnly);
  options.lambda = 12 * kTimeUnit;
  ReplicaPlanner planner(options);
  EXPECT_EQ(planner.plan(counts_of(shape, {48, 0, 12})).blocks,
            (Words{24, 24, 0, 0, 0, 0, 0, 0, 12}));
}

}  // namespace
}  // namespace tileweave

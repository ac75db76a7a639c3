// Options and counts that make no sense, agreement between ranks, and defaults.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/moe/planner/row_assignment.h"

namespace tileweave {
namespace {

template <class Act>
std::string sentence(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string check_sentence(const PlannerShape& shape, std::int32_t lambda = 0,
                           std::int32_t slack = 0) {
  PlannerOptions options = paper_preset(shape, PlanObjective::kLoadOnly);
  options.lambda = lambda;
  options.slack = slack;
  return sentence([&] { ReplicaPlanner planner(options); });
}

TEST(PlannerInput, DefaultBudgetIsAQuarterOfTheOwnedExpertsAtLeastOne) {
  EXPECT_EQ(PlannerShape::default_slots(8, 128), 4);
  EXPECT_EQ(PlannerShape::default_slots(8, 256), 8);
  EXPECT_EQ(PlannerShape::default_slots(8, 64), 2);
  EXPECT_EQ(PlannerShape::default_slots(8, 8), 1);
  EXPECT_EQ(PlannerShape::default_slots(3, 22), 2);  // ceil(22 / 3) = 8
  EXPECT_EQ(PlannerShape::default_slots(3, 21), 1);
}

TEST(PlannerInput, OwnershipCoversEveryExpertOnceForAnyDivision) {
  for (std::int32_t ranks = 1; ranks <= 9; ++ranks) {
    for (std::int32_t experts = ranks; experts <= 40; ++experts) {
      const PlannerShape shape{ranks, experts, 1, 128};
      std::int32_t next = 0;
      for (std::int32_t g = 0; g < ranks; ++g) {
        ASSERT_EQ(shape.first_owned(g), next);
        ASSERT_EQ(shape.num_owned(g), experts / ranks + (g < experts % ranks ? 1 : 0));
        for (std::int32_t i = 0; i < shape.num_owned(g); ++i) ASSERT_EQ(shape.owner_of(next++), g);
      }
      ASSERT_EQ(next, experts);
    }
  }
}

TEST(PlannerInput, NamesTheIntegerThatMakesNoSense) {
  const std::string who = "make MoE planner options: ";
  EXPECT_EQ(check_sentence({8, 9, 1, 128}), "no error");
  EXPECT_EQ(check_sentence({9, 8, 1, 128}),
            who + "at least one expert per rank, got 9 ranks and 8 experts");
  EXPECT_EQ(check_sentence({0, 8, 1, 128}), who + "num_ranks of at least 1, got 0");
  EXPECT_EQ(check_sentence({1, 0, 1, 128}), who + "num_experts of at least 1, got 0");
  EXPECT_EQ(check_sentence({2, 8, -1, 128}), who + "num_slots of at least 0, got -1");
  EXPECT_EQ(check_sentence({2, 8, 9, 128}), who + "num_slots of at most 8, got 9");
  EXPECT_EQ(check_sentence({2, 8, 1, 0}), who + "block_rows of at least 1, got 0");
  EXPECT_EQ(check_sentence({2, 8, 1, 1}, -1), who + "lambda of at least 0, got -1");
  EXPECT_EQ(check_sentence({2, 8, 1, 1}, 0, 1025), who + "slack of at most 1024, got 1025");
  EXPECT_EQ(sentence([] { derived_lambda({.link_gigabytes = 0}, 128, PlanObjective::kLoadOnly); }),
            who + "link_gigabytes of at least 1, got 0");
}

TEST(PlannerInput, NamesTheRankThatWasBuiltWithAnotherInteger) {
  const PlannerShape shape = shape_with_default_slots(8, 64);
  std::vector<PlannerOptions> ranks(8, tuned_preset(shape, PlanObjective::kLoadOnly));
  EXPECT_EQ(sentence([&] { require_agreed(ranks); }), "no error");
  ranks[5].lambda = 7;
  EXPECT_EQ(sentence([&] { require_agreed(ranks); }),
            "agree on the MoE planner's integers: lambda 1389 on rank 5 as on rank 0, got 7");
  ranks[3].shape.block_rows = 64;
  EXPECT_EQ(sentence([&] { require_agreed(ranks); }),
            "agree on the MoE planner's integers: block_rows 128 on rank 3 as on rank 0, got 64");
}

TEST(PlannerInput, RefusesCountsOfAnotherShapeNegativeOrTooMany) {
  ReplicaPlanner planner(paper_preset({2, 3, 1, 128}, PlanObjective::kLoadOnly));
  const auto plan = [&](const std::vector<std::int32_t>& counts) {
    return sentence([&] { planner.plan(counts); });
  };
  EXPECT_EQ(plan({1, 2, 3}), "plan replicas: 6 counts, one per rank and expert (2 x 3), got 3");
  EXPECT_EQ(plan({1, 2, 3, 4, -5, 6}),
            "plan replicas: counts of at least 0 (rank 1, expert 1), got -5");
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(plan({kMost - 3 * 128, 0, 0, 0, 0, 1}),
            "plan replicas: at most 2147483263 rows in all, got 2147483264");
  EXPECT_EQ(plan({kMost - 3 * 128, 0, 0, 0, 0, 0}), "no error");
  EXPECT_EQ(plan({0, 0, 0, 0, 0, 0}), "no error");
}

TEST(PlannerInput, RowsBeyondWhatWasCountedAreRefused) {
  const std::vector<std::int32_t> counts = {2, 0, 1, 0};
  ReplicaPlanner planner(paper_preset({2, 2, 1, 128}, PlanObjective::kLoadOnly));
  const ReplicaPlan& plan = planner.plan(counts);
  RowPlacer placer(plan, counts, 1);
  EXPECT_TRUE(placer.next(0) == (RowPlace{.rank = 0, .slot = -1, .row = 2}));
  EXPECT_EQ(sentence([&] { placer.next(0); }),
            "place a row: no more rows for expert 0 than were counted, got one more");
  EXPECT_EQ(sentence([&] { placer.next(2); }), "place a row: an expert below 2, got 2");
}

TEST(PlannerInput, OneRankAndOneExpertAreAPlan) {
  ReplicaPlanner planner(tuned_preset(shape_with_default_slots(1, 1), PlanObjective::kLoadOnly));
  EXPECT_EQ(planner.plan(std::vector<std::int32_t>{1000}).summary.max_blocks, 8);
}

}  // namespace
}  // namespace tileweave

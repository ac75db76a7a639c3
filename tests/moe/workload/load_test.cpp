// Loads of experts, routes with them, their twins and their metrics.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "tileweave/core/error.h"
#include "tileweave/moe/workload/configurations.h"
#include "tileweave/moe/workload/metrics.h"

namespace tileweave {
namespace {

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

template <class Act>
std::string sentence(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ExpertLoad, FollowsSharesByLargestRemainder) {
  // 10 rows of 3 : 2 : 1 : 1 are 4.28, 2.86, 1.43, 1.43: one to 2.86, then one to the first 1.43.
  EXPECT_EQ(rows_of_shares(std::vector<double>{3, 2, 1, 1}, {.rows = 10, .most_per_expert = 10}),
            (std::vector<std::int64_t>{4, 3, 2, 1}));
}

TEST(ExpertLoad, SpreadsWhatIsAboveOneRowPerTokenOverTheOthers) {
  // 80 of 100 rows would go to one expert of 40 tokens; 60 are left for 10 : 10.
  EXPECT_EQ(rows_of_shares(std::vector<double>{80, 10, 10}, {.rows = 100, .most_per_expert = 40}),
            (std::vector<std::int64_t>{40, 30, 30}));
  EXPECT_EQ(rows_of_shares(std::vector<double>{1, 0, 0}, {.rows = 6, .most_per_expert = 2}),
            (std::vector<std::int64_t>{2, 2, 2}));
}

TEST(ExpertLoad, AddsUpWithinItsLimitForEveryFamilyAndSeed) {
  for (const LoadDistribution& load :
       {LoadDistribution{LoadFamily::kBalanced, 0}, LoadDistribution{LoadFamily::kZipf, 1.2},
        LoadDistribution{LoadFamily::kZipf, 30}, LoadDistribution{LoadFamily::kLogNormal, 0.5},
        LoadDistribution{LoadFamily::kLogNormal, 100},
        LoadDistribution{LoadFamily::kDirichlet, 0.01},
        LoadDistribution{LoadFamily::kDirichlet, 2}}) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      for (const std::int32_t experts : {1, 7, 64}) {
        SCOPED_TRACE(to_string(load) + ", seed " + std::to_string(seed));
        const std::int64_t tokens = 37;
        const LoadTotals totals{.rows = tokens * std::min(experts, 5), .most_per_expert = tokens};
        const auto rows = expert_load(load, experts, totals, seed);
        ASSERT_EQ(sum(rows), totals.rows);
        ASSERT_LE(*std::max_element(rows.begin(), rows.end()), tokens);
        ASSERT_GE(*std::min_element(rows.begin(), rows.end()), 0);
        ASSERT_EQ(expert_load(load, experts, totals, seed), rows) << "another result, same seed";
      }
    }
  }
}

TEST(ExpertLoad, ZipfIsAPermutationOfItsPowers) {
  auto rows = expert_load({LoadFamily::kZipf, 1}, 4, {.rows = 2500, .most_per_expert = 2500}, 9);
  std::sort(rows.rbegin(), rows.rend());
  EXPECT_EQ(rows, (std::vector<std::int64_t>{1200, 600, 400, 300}));
}

TEST(ExpertLoad, ResizingKeepsTheShapeOfAHistogram) {
  EXPECT_EQ(resized_shares(std::vector<std::int64_t>{1, 3}, 4),
            (std::vector<double>{1.5, 1.5, .5, .5}));
  EXPECT_EQ(resized_shares(std::vector<std::int64_t>{1, 2, 3, 4}, 2), (std::vector<double>{7, 3}));
  EXPECT_EQ(resized_shares(std::vector<std::int64_t>{5, 1, 3}, 3), (std::vector<double>{5, 3, 1}));
  EXPECT_EQ(sentence([] {
              resized_shares(std::vector<std::int64_t>{0, 0}, 2);
            }),
            "resize a histogram: counts of at least 0, not all 0");
}

TEST(ExpertLoad, RefusesMoreRowsThanTokensCanGive) {
  EXPECT_EQ(
      sentence([] {
        rows_of_shares(std::vector<double>{1, 1}, {.rows = 21, .most_per_expert = 10});
      }),
      "bring expert shares to rows: at most 10 rows for each of 2 experts, got 21 rows in all");
}

TEST(Route, IsDealtWithEqualTokensDifferentExpertsAndExactCounts) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const auto& [ranks, tokens, k, experts] :
         {std::tuple{3, 10, 2, 5}, {1, 7, 4, 4}, {8, 1, 8, 9}, {4, 16, 1, 6}, {2, 1, 1, 2}}) {
      SCOPED_TRACE(std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
      const RouteShape shape{.num_ranks = ranks, .tokens_per_rank = tokens, .top_k = k};
      const std::int64_t all = static_cast<std::int64_t>(ranks) * tokens;
      const auto rows = expert_load({LoadFamily::kZipf, 1.5}, experts,
                                    {.rows = all * k, .most_per_expert = all}, seed);
      const Route route = deal_route(rows, shape, seed);
      ASSERT_EQ(sentence([&] { check(route); }), "no error");
      ASSERT_EQ(route.num_ranks(), ranks);
      for (std::int32_t p = 0; p < ranks; ++p) ASSERT_EQ(route.num_tokens(p), tokens);
      const CountMatrix counts = counts_of(route);
      ASSERT_EQ(expert_rows(counts), rows);
      ASSERT_TRUE(counts == deal_counts(rows, shape)) << "counts without the route differ";
      ASSERT_TRUE(deal_route(rows, shape, seed) == route);
    }
  }
}

TEST(Route, IsDealtEvenWhereEveryTokenNeedsAHotExpert) {
  // Two experts that all tokens go to, the third row of each token shared by the rest.
  const std::vector<std::int64_t> rows = {12, 12, 5, 4, 3};
  const Route route = deal_route(rows, {.num_ranks = 3, .tokens_per_rank = 4, .top_k = 3}, 1);
  EXPECT_EQ(sentence([&] { check(route); }), "no error");
  EXPECT_EQ(expert_rows(counts_of(route)), rows);
}

TEST(Route, SaysWhatIsImpossible) {
  const RouteShape shape{.num_ranks = 2, .tokens_per_rank = 2, .top_k = 2};
  EXPECT_EQ(sentence([&] {
              deal_route(std::vector<std::int64_t>{5, 2, 1}, shape, 1);
            }),
            "deal rows to tokens: 0 to 4 rows for expert 0, one per token, got 5");
  EXPECT_EQ(sentence([&] {
              deal_route(std::vector<std::int64_t>{4, 2, 1}, shape, 1);
            }),
            "deal rows to tokens: rows that add up to 4 tokens x top 2 = 8, got 7");
  EXPECT_EQ(sentence([&] { deal_route(std::vector<std::int64_t>{8}, shape, 1); }),
            "deal rows to tokens: a top k of 1 to 1, the number of experts, got 2");
  EXPECT_EQ(sentence([] {
              check(Route{4, 2, {{0, 1, 2, 4}}});
            }),
            "check a route: expert ids of -1 to 3 (rank 0, token 1), got 4");
  EXPECT_EQ(sentence([] {
              check(Route{4, 2, {{}, {3, 3}}});
            }),
            "check a route: different experts for token 0 of rank 1, got expert 3 twice");
  EXPECT_EQ(sentence([] {
              check(Route{4, 5, {{}}});
            }),
            "check a route: a top k of 1 to 4, the number of experts, got 5");
  EXPECT_EQ(sentence([] {
              check(Route{4, 2, {{0, 1, 2}}});
            }),
            "check a route: 2 ids for each token of rank 0, got 3 ids");
  EXPECT_EQ(sentence([] { check(Route{4, 2, {{-1, -1, -1, 0}}}); }), "no error");
}

TEST(Route, BalancedTwinKeepsTokensAndMasks) {
  Route route = deal_route(std::vector<std::int64_t>{12, 12, 6, 3, 3},
                           {.num_ranks = 3, .tokens_per_rank = 4, .top_k = 3}, 1);
  route.ids[1].resize(6);  // ranks of unequal size
  route.ids[0][1] = route.ids[2][5] = -1;
  const Route twin = balanced_twin(route);
  EXPECT_EQ(sentence([&] { check(twin); }), "no error");
  for (std::size_t p = 0; p < 3; ++p) {
    ASSERT_EQ(twin.ids[p].size(), route.ids[p].size());
    for (std::size_t i = 0; i < twin.ids[p].size(); ++i) {
      EXPECT_EQ(twin.ids[p][i] < 0, route.ids[p][i] < 0);
    }
  }
  EXPECT_EQ(expert_rows(counts_of(twin)), (std::vector<std::int64_t>{6, 6, 6, 5, 5}));
}

TEST(Route, SplitsOverRanksInOrder) {
  const Route route{9, 1, {{1, 2, 3}, {4, 5}}};
  EXPECT_TRUE(split_over_ranks(route, 3) == (Route{9, 1, {{1, 2}, {3, 4}, {5}}}));
  EXPECT_TRUE(split_over_ranks(route, 1) == (Route{9, 1, {{1, 2, 3, 4, 5}}}));
  EXPECT_TRUE(split_over_ranks(route, 6) == (Route{9, 1, {{1}, {2}, {3}, {4}, {5}, {}}}));
}

TEST(Route, WeightsOfATokenAddUpToOneAndMaskedOnesAreZero) {
  const Route route{4, 2, {{0, 1, -1, 2, -1, -1}}};
  const auto weights = seeded_weights(route, 3);
  EXPECT_FLOAT_EQ(weights[0][0] + weights[0][1], 1);
  EXPECT_EQ(weights[0][2], 0);
  EXPECT_EQ(weights[0][3], 1);
  EXPECT_EQ(weights[0][4] + weights[0][5], 0);
  EXPECT_EQ(seeded_weights(route, 3), weights);
  EXPECT_NE(seeded_weights(route, 4), weights);
}

TEST(Metrics, ByHand) {
  // Rows of experts 6, 2, 3, 1; ranks of two experts: 8 and 4.
  CountMatrix counts = empty_counts(2, 4);
  counts.counts = {6, 0, 0, 1, 0, 2, 3, 0};
  const Skew skew = skew_of(counts);
  EXPECT_DOUBLE_EQ(skew.experts, 2);
  EXPECT_DOUBLE_EQ(skew.ranks, 8.0 / 6);
  EXPECT_DOUBLE_EQ(skew.effective, 144.0 / (4 * 50));
  EXPECT_EQ(fixed_rows_by_rank(counts), (std::vector<std::int64_t>{8, 4}));
  using Rows = std::vector<std::int64_t>;
  EXPECT_DOUBLE_EQ(*removed_excess(Rows{8, 4}, Rows{7, 5}), 0.5);
  EXPECT_DOUBLE_EQ(*removed_excess(Rows{8, 4}, Rows{6, 6}), 1);
  EXPECT_DOUBLE_EQ(*removed_excess(Rows{8, 4}, Rows{3, 9}), -0.5);
  EXPECT_FALSE(removed_excess(Rows{6, 6}, Rows{6, 6}).has_value());
  EXPECT_EQ(skew_of(empty_counts(2, 4)).experts, 1);
}

TEST(Configurations, Are147WithThreeFamiliesAndTwentyOneSizes) {
  const auto all = evaluation_configurations();
  EXPECT_EQ(all.size(), 147U);
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](auto& c) { return c.is_balanced(); }), 21);
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](auto& c) { return c.load.family == LoadFamily::kZipf; }),
            84);
  std::set<std::string> names;
  for (const auto& c : all) names.insert(to_string(c));
  EXPECT_EQ(names.size(), 147U);
  EXPECT_TRUE(names.count("256 experts, top 8, 32768 tokens, log-normal 0.5 (synthetic)"));
  EXPECT_TRUE(names.count("64 experts, top 8, 512 tokens, zipf 1.2"));
}

TEST(Configurations, HaveRoutesWithTheCountsThatPlansSee) {
  for (const auto& c : evaluation_configurations()) {
    SCOPED_TRACE(to_string(c));
    const CountMatrix counts = counts_of(c, 2);
    ASSERT_NO_THROW(require_counts_of_a_route(counts, c.top_k));
    ASSERT_EQ(sum(expert_rows(counts)), std::int64_t{8} * c.tokens_per_rank * c.top_k);
    if (c.tokens_per_rank <= 1024) {
      ASSERT_TRUE(counts_of(route_of(c, 2)) == counts);
    }
    const Skew skew = skew_of(counts);
    if (c.is_balanced()) {
      ASSERT_NEAR(skew.experts, 1, 1e-9);
    }
    if (!c.is_balanced()) {
      ASSERT_GT(skew.experts, 1.5);
    }
  }
}

TEST(Counts, ThatDoNotAddUpAreRefused) {
  CountMatrix counts = empty_counts(2, 3);
  counts.counts = {2, 1, 1, 0, 3, 0};
  EXPECT_EQ(
      sentence([&] { require_counts_of_a_route(counts, 2); }),
      "check counts against the top k: counts of rank 1 that add up to a multiple of 2, got 3");
  counts.counts = {2, 1, 1, 0, 3, 1};
  EXPECT_EQ(sentence([&] { require_counts_of_a_route(counts, 2); }),
            "check counts against the top k: at most 2 rows of rank 1 for expert 1, one per token, "
            "got 3");
  EXPECT_EQ(sentence([&] { require_counts_of_a_route(counts, 4); }),
            "check counts against the top k: a top k of 1 to the experts there are, got 4");
}

}  // namespace
}  // namespace tileweave

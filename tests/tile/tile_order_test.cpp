#include "tileweave/tile/tile_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/tile/random_cases.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

using testing::num_cases;
using testing::Random;

std::vector<std::int64_t> walk(const TileOrder& order, std::int64_t count) {
  std::vector<std::int64_t> works;
  for (std::int64_t p = 0; p < count; ++p) works.push_back(order.at(p, count));
  return works;
}

bool is_permutation_of_all(std::vector<std::int64_t> works) {
  std::sort(works.begin(), works.end());
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (works[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

TEST(TileOrder, IdentityTakesWorksAsTheyCome) {
  EXPECT_EQ(walk(TileOrder::identity(), 4), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(TileOrder, RotationStartsAtItsOffset) {
  EXPECT_EQ(walk(TileOrder::rotation(3), 5), (std::vector<std::int64_t>{3, 4, 0, 1, 2}));
  EXPECT_EQ(walk(TileOrder::rotation(-2), 5), (std::vector<std::int64_t>{3, 4, 0, 1, 2}));
  EXPECT_EQ(walk(TileOrder::rotation(5), 5), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST(TileOrder, RotationSurvivesTheLargestOffsets) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(TileOrder::rotation(kMax).at(1, 10), (7 + 1) % 10);  // 2^63 - 1 ends in 7
  EXPECT_EQ(TileOrder::rotation(kMin).at(1, 10), (10 - 8 + 1) % 10);
  EXPECT_EQ(TileOrder::rotation(kMin).at(0, 1), 0);
}

TEST(TileOrder, RotationIsAPermutationForAnyOffset) {
  for (std::uint64_t seed = 1; seed <= num_cases(1000); ++seed) {
    Random random(seed);
    const std::int64_t count = random.in(1, 60);
    const std::int64_t offset = random.in(0, 1) == 1
                                    ? random.in(-200, 200)
                                    : random.in(-(std::int64_t{1} << 61), std::int64_t{1} << 61);
    const auto works = walk(TileOrder::rotation(offset), count);
    ASSERT_TRUE(is_permutation_of_all(works)) << "seed " << seed << ", offset " << offset;
    std::int64_t first = offset % count;  // C++ remainder, then into [0, count)
    while (first < 0) first += count;
    ASSERT_EQ(works[0], first) << "seed " << seed << ", offset " << offset;
  }
}

TEST(TileOrder, RefusesAPositionBehindItsTable) {
  const TileOrder order = TileOrder::table({2, 0, 1});
  EXPECT_EQ(order.at(0, 3), 2);
  EXPECT_THROW(order.at(3, 4), Error);
  EXPECT_THROW(order.at(-1, 3), Error);
}

TEST(TileOrder, LongestFirstSortsByCostAndKeepsTies) {
  const std::vector<double> cost = {1.0, 5.0, 3.0, 5.0, 1.0};
  const TileOrder order = TileOrder::longest_first(
      5, [&](std::int64_t w) { return cost[static_cast<std::size_t>(w)]; });
  EXPECT_EQ(walk(order, 5), (std::vector<std::int64_t>{1, 3, 2, 0, 4}));
  EXPECT_THROW(TileOrder::longest_first(std::int64_t{1} << 31, [](std::int64_t) { return 0.0; }),
               Error);
}

TEST(TileOrder, CompletionRanksAreTheLastArrivals) {
  // Works 0..3 write tiles {0}, {0, 1}, {1}, {}; nobody writes tile 2.
  const std::vector<std::vector<std::int64_t>> writes = {{0}, {0, 1}, {1}, {}};
  const auto list = [&](std::int64_t w) { return writes[static_cast<std::size_t>(w)]; };
  EXPECT_EQ(completion_ranks(TileOrder::identity(), 4, 3, list),
            (std::vector<std::int64_t>{1, 2, -1}));
  EXPECT_EQ(completion_ranks(TileOrder::table({3, 2, 1, 0}), 4, 3, list),
            (std::vector<std::int64_t>{3, 2, -1}));
  EXPECT_THROW(completion_ranks(TileOrder::identity(), 4, 1, list), Error);
}

TEST(TileOrder, FollowProducerRefusesATileWithoutARank) {
  EXPECT_THROW(
      TileOrder::follow_producer(1, {0}, [](std::int64_t) { return std::vector<std::int64_t>{1}; }),
      Error);
}

/// When the producer's works finish in order, a consumer that follows it never has to wait longer
/// for its p-th work than any order could make it: the ready times it meets only rise.
TEST(TileOrderProperty, FollowProducerVisitsWorksAsTheyBecomeReady) {
  for (std::uint64_t seed = 1; seed <= num_cases(2000); ++seed) {
    Random random(seed + 7000000);
    const std::int64_t num_producers = random.in(1, 12);
    const std::int64_t num_tiles = random.in(1, 10);
    const std::int64_t num_consumers = random.in(1, 12);
    std::vector<std::int32_t> shuffled(static_cast<std::size_t>(num_producers));
    std::iota(shuffled.begin(), shuffled.end(), 0);
    for (std::size_t i = shuffled.size(); i > 1; --i) {
      std::swap(shuffled[i - 1],
                shuffled[static_cast<std::size_t>(random.in(0, static_cast<std::int64_t>(i) - 1))]);
    }
    const auto random_lists = [&](std::int64_t count) {
      std::vector<std::vector<std::int64_t>> lists(static_cast<std::size_t>(count));
      for (auto& list : lists) {
        for (std::int64_t n = random.in(0, 3); n > 0; --n) {
          list.push_back(random.in(0, num_tiles - 1));
        }
      }
      return lists;
    };
    const auto writes = random_lists(num_producers);
    const auto reads = random_lists(num_consumers);
    const auto of = [](const std::vector<std::vector<std::int64_t>>& lists) {
      return [&lists](std::int64_t w) { return lists[static_cast<std::size_t>(w)]; };
    };
    const TileOrder producer = TileOrder::table(shuffled);
    const auto rank = completion_ranks(producer, num_producers, num_tiles, of(writes));
    const auto order =
        walk(TileOrder::follow_producer(num_consumers, rank, of(reads)), num_consumers);

    // Replays the producer work by work; a tile is complete when nobody later writes it.
    const auto ready_after = [&](std::int64_t consumer) {
      std::int64_t done = -1;
      for (std::int64_t p = 0; p < num_producers; ++p) {
        const auto& written =
            writes[static_cast<std::size_t>(shuffled[static_cast<std::size_t>(p)])];
        for (const std::int64_t t : reads[static_cast<std::size_t>(consumer)]) {
          if (std::find(written.begin(), written.end(), t) != written.end()) done = p;
        }
      }
      return done;
    };
    ASSERT_TRUE(is_permutation_of_all(order)) << "seed " << seed;
    for (std::size_t i = 1; i < order.size(); ++i) {
      const std::int64_t before = ready_after(order[i - 1]);
      const std::int64_t now = ready_after(order[i]);
      ASSERT_LE(before, now) << "seed " << seed << ", position " << i;
      if (before == now) {
        ASSERT_LT(order[i - 1], order[i]) << "ties by index; seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace tileweave

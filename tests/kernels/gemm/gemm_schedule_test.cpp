#include "tileweave/kernels/gemm/gemm_schedule.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tileweave/kernels/gemm/gemm.h"

namespace tileweave {
namespace {

struct Case {
  GemmOptions options;
  std::int64_t m, n, k;
};

Case random_case(std::mt19937_64& random) {
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  Case c{{.tile_m = pick(1, 20), .tile_n = pick(1, 20), .tile_k = pick(1, 9)},
         pick(1, 50),
         pick(1, 50),
         pick(1, 60)};
  const std::int64_t steps = ceil_div(c.k, c.options.tile_k);
  const std::int64_t tiles = ceil_div(c.m, c.options.tile_m) * ceil_div(c.n, c.options.tile_n);
  switch (pick(0, 2)) {
    case 0:
      break;
    case 1:
      c.options.split = GemmSplit::kSplitK;
      c.options.splits = pick(1, steps);
      break;
    default:
      c.options.split = GemmSplit::kStreamK;
      c.options.num_blocks = pick(1, steps * tiles);
  }
  return c;
}

TEST(GemmSchedule, EveryElementOfEveryTileIsComputedOnceInAscendingShares) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 400; ++i) {
    const Case c = random_case(random);
    SCOPED_TRACE("case " + std::to_string(i) + " of seed 7");
    const GemmSchedule s = gemm_schedule(c.options, c.m, c.n, c.k);
    std::vector<std::int64_t> next_k(static_cast<std::size_t>(s.num_tiles()), 0);
    std::vector<std::int64_t> contributors(next_k.size(), 0);
    std::set<std::int64_t> slots;
    for (std::int64_t w = 0; w < s.num_works; ++w) {
      ASSERT_LT(s.begin(w), s.begin(w + 1)) << "work " << w << " is empty";
      for (std::int64_t t = s.first_tile(w); t <= s.last_tile(w); ++t) {
        const GemmSegment part = s.segment(w, t);
        const auto at = static_cast<std::size_t>(t);
        ASSERT_EQ(part.k_begin, next_k[at]) << "work " << w << " tile " << t;
        ASSERT_LT(part.k_begin, part.k_end);
        next_k[at] = part.k_end;
        ASSERT_EQ(w, s.first_contributor(t) + contributors[at]);
        ++contributors[at];
        if (part.contributions > 1) {
          ASSERT_LT(part.slot, s.num_partial_slots());
          ASSERT_TRUE(slots.insert(part.slot).second) << "slot " << part.slot << " is used twice";
        }
      }
    }
    ASSERT_EQ(s.begin(s.num_works), s.num_steps());
    for (std::int64_t t = 0; t < s.num_tiles(); ++t) {
      ASSERT_EQ(next_k[static_cast<std::size_t>(t)], c.k);
      ASSERT_EQ(contributors[static_cast<std::size_t>(t)], s.contributions(t));
    }
    for (std::int64_t step = 0; step < s.num_steps(); ++step) {
      const std::int64_t w = s.work_of(step);
      ASSERT_TRUE(s.begin(w) <= step && step < s.begin(w + 1)) << "step " << step;
    }
  }
}

TEST(GemmSchedule, StreamKSharesDifferByAtMostOneStep) {
  const GemmSchedule s = gemm_schedule(
      {.tile_m = 16, .tile_n = 16, .tile_k = 8, .split = GemmSplit::kStreamK, .num_blocks = 7}, 40,
      50, 100);
  for (std::int64_t w = 0; w < s.num_works; ++w) {
    const std::int64_t share = s.begin(w + 1) - s.begin(w);
    EXPECT_TRUE(share == s.num_steps() / 7 || share == s.num_steps() / 7 + 1) << share;
  }
}

TEST(GemmSchedule, TilesLargerThanTheMatrixAreCutToIt) {
  const GemmSchedule s = gemm_schedule({.tile_m = 64, .tile_n = 64}, 3, 5, 7);
  EXPECT_EQ(s.num_works, 1);
  EXPECT_EQ(s.partial_elements(), 15);
  EXPECT_EQ(s.tile_box(0), (Box{{0, 0}, {3, 5}}));
}

}  // namespace
}  // namespace tileweave

#include "tileweave/core/coord.h"

#include <gtest/gtest.h>

#include <limits>

namespace tileweave {
namespace {

Box box_of(const Coord& begin, const Coord& size) {
  Box box;
  box.begin = begin;
  box.size = size;
  return box;
}

TEST(Coord, KnowsItsAxesAndVolume) {
  constexpr Coord coord = {4, 5, 6};
  static_assert(coord.num_axes == 3);
  static_assert(coord.volume() == 120);
  static_assert(Coord{}.volume() == 1);
  static_assert(Coord::filled(5, 2).volume() == 32);
}

TEST(Coord, DiffersWhenTheNumberOfAxesDiffers) {
  EXPECT_TRUE((Coord{1, 0} == Coord{1, 0}));
  EXPECT_FALSE((Coord{1, 0} == Coord{1}));
  EXPECT_FALSE((Coord{1, 0} == Coord{1, 2}));
}

TEST(Coord, CeilDivDoesNotOverflowNearTheLimit) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  static_assert(ceil_div(0, 7) == 0);
  static_assert(ceil_div(7, 7) == 1);
  static_assert(ceil_div(8, 7) == 2);
  static_assert(ceil_div(kMax, kMax) == 1);
  static_assert(ceil_div(kMax, 2) == (std::int64_t{1} << 62));
  static_assert(ceil_div(kMax, kMax - 1) == 2);
}

TEST(Coord, RefusesMoreValuesThanThereAreAxes) {
  EXPECT_EQ((Coord{1, 2, 3, 4, 5}).num_axes, kMaxAxes);
  try {
    (void)Coord{1, 2, 3, 4, 5, 6};
    FAIL() << "a sixth value was dropped";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "make a coordinate: at most 5 axes, got 6");
  }
}

TEST(Box, IsEmptyWhenAnyAxisIs) {
  EXPECT_FALSE(box_of({1, 1}, {1, 1}).empty());
  EXPECT_TRUE(box_of({1, 1}, {1, 0}).empty());
  EXPECT_TRUE(box_of({1, 1}, {-1, 5}).empty());
  EXPECT_EQ(box_of({1, 1}, {-1, -5}).volume(), 0);
}

TEST(Box, IntersectsAsElementsDo) {
  for (std::int64_t a = 0; a < 5; ++a) {
    for (std::int64_t m = 0; m < 4; ++m) {
      for (std::int64_t b = 0; b < 5; ++b) {
        for (std::int64_t n = 0; n < 4; ++n) {
          const Box left = box_of({a}, {m});
          const Box right = box_of({b}, {n});
          std::int64_t common = 0;
          std::int64_t inner = 0;
          for (std::int64_t e = 0; e < 10; ++e) {
            const bool in_left = e >= a && e < a + m;
            const bool in_right = e >= b && e < b + n;
            common += in_left && in_right ? 1 : 0;
            inner += in_right ? 1 : 0;
          }
          EXPECT_EQ(intersect(left, right).volume(), common) << a << m << b << n;
          EXPECT_EQ(contains(left, right), common == inner) << a << m << b << n;
        }
      }
    }
  }
}

TEST(Box, ContainsNothingThatEndsPastTheLargestNumber) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(contains(box_of({0}, {4}), box_of({1}, {kMax})));
  EXPECT_FALSE(contains(box_of({0}, {4}), box_of({kMax}, {1})));
  EXPECT_TRUE(contains(box_of({0}, {kMax}), box_of({1}, {kMax - 1})));
}

}  // namespace
}  // namespace tileweave

#include "tileweave/tile/tile_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/tile/brute_force.h"
#include "tests/tile/random_cases.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

using testing::num_cases;
using testing::Random;

Box box_of(const Coord& begin, const Coord& size) {
  Box box;
  box.begin = begin;
  box.size = size;
  return box;
}

/// The sentence with which the table is refused, or "accepted".
std::string refusal(const Shape& shape, std::vector<Box> boxes) {
  try {
    TileSet::table(shape, std::move(boxes));
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

bool says(const std::string& sentence, const std::string& part) {
  return sentence.find(part) != std::string::npos;
}

TEST(TileSet, PlainNumbersTilesRowMajor) {
  const TileSet set = TileSet::plain({{5, 7}, {2, 3}});
  EXPECT_EQ(set.count(), 9);
  EXPECT_EQ(set.grid(), (Coord{3, 3}));
  EXPECT_EQ(set.box(8), box_of({4, 6}, {1, 1}));
  EXPECT_EQ(set.coord(5), (Coord{1, 2}));
  EXPECT_EQ(set.linear({1, 2}), 5);
  EXPECT_TRUE(set.is_plain());
  EXPECT_FALSE(set.empty());
}

TEST(TileSet, DefaultIsEmpty) {
  const TileSet set;
  EXPECT_TRUE(set.empty());
  EXPECT_FALSE(set.is_plain());
  EXPECT_EQ(set.count(), 0);
  EXPECT_EQ(set.describe(), "no tiling");
}

TEST(TileSet, DescribesItself) {
  EXPECT_EQ(TileSet::plain({{1000, 512}, {64, 128}}).describe(), "64x128 tiles of 1000x512");
  EXPECT_EQ(TileSet::table({4, 2}, {box_of({0, 0}, {4, 2})}).describe(),
            "table of 1 boxes over 4x2");
}

TEST(TileSet, RefusesAnInvalidTilingWithOneSentence) {
  try {
    TileSet::plain({{8, 8}, {0, 4}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "tiling 8x8 by 0x4: every axis of the tile must be at least 1");
  }
}

TEST(TileSet, RefusesOverlappingBoxesByNumber) {
  const std::string sentence =
      refusal({4, 4}, {box_of({0, 0}, {2, 4}), box_of({2, 0}, {2, 2}), box_of({1, 2}, {3, 2})});
  EXPECT_TRUE(says(sentence, "must not overlap")) << sentence;
  EXPECT_TRUE(says(sentence, "boxes 0 and 2")) << sentence;
  EXPECT_TRUE(says(sentence, "[1:2, 2:4]")) << sentence;
}

TEST(TileSet, RefusesHolesByNumberOfElements) {
  const std::string sentence = refusal({4, 4}, {box_of({0, 0}, {2, 4}), box_of({2, 0}, {2, 3})});
  EXPECT_TRUE(says(sentence, "cover all 16 elements of 4x4")) << sentence;
  EXPECT_TRUE(says(sentence, "got 14")) << sentence;
}

TEST(TileSet, RefusesBoxesOutsideTheTensorAndEmptyOnes) {
  const Box whole = box_of({0, 0}, {4, 4});
  EXPECT_TRUE(says(refusal({4, 4}, {whole, box_of({4, 0}, {1, 1})}), "box 1 must lie inside 4x4"));
  EXPECT_TRUE(says(refusal({4, 4}, {box_of({-1, 0}, {5, 4})}), "box 0 must lie inside 4x4"));
  EXPECT_TRUE(says(refusal({4, 4}, {whole, box_of({0, 0}, {0, 4})}), "box 1 must lie inside"));
  EXPECT_TRUE(says(refusal({4, 4}, {whole, box_of({0, 0}, {1, -1})}), "box 1 must lie inside"));
  EXPECT_TRUE(says(refusal({4, 4}, {box_of({0}, {4})}), "box 0 must lie inside"));
  EXPECT_TRUE(says(refusal({4, 4}, {}), "cover all 16 elements"));
  EXPECT_TRUE(says(refusal({}, {}), "at least one axis"));
}

TEST(TileSet, RefusesBoxesWhoseEndOverflows) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(says(refusal({4, 4}, {box_of({1, 0}, {kMax, 4})}), "box 0 must lie inside 4x4"));
}

TEST(TileSet, LooseTablesMayOverlapAndLeaveHoles) {
  const TileSet set =
      TileSet::loose_table({10}, {box_of({0}, {4}), box_of({3}, {4}), box_of({3}, {4})});
  EXPECT_EQ(set.count(), 3);
  EXPECT_EQ(set.grid(), (Coord{3}));
  std::vector<std::int64_t> met;
  set.for_each_meeting(box_of({3}, {1}), [&](std::int64_t t) { met.push_back(t); });
  EXPECT_EQ(met, (std::vector<std::int64_t>{0, 1, 2}));
  met.clear();
  set.for_each_meeting(box_of({8}, {2}), [&](std::int64_t t) { met.push_back(t); });
  EXPECT_TRUE(met.empty());
  EXPECT_THROW(TileSet::loose_table({10}, {box_of({8}, {4})}), Error);
}

TEST(TileSet, ComparesByContent) {
  const std::vector<Box> boxes = {box_of({0}, {1}), box_of({1}, {3})};
  const TileSet table = TileSet::table({4}, boxes);
  EXPECT_TRUE(table == TileSet::table({4}, boxes));
  EXPECT_FALSE(table == TileSet::table({4}, {boxes[1], boxes[0]}));
  EXPECT_FALSE(table == TileSet::plain({{4}, {2}}));
  EXPECT_TRUE(TileSet::plain({{4}, {2}}) == TileSet::plain({{4}, {2}}));
  EXPECT_FALSE(TileSet::plain({{4}, {2}}) == TileSet::plain({{4}, {3}}));
}

TEST(TileSetProperty, AcceptsEveryPartitionAndRefusesEveryDamagedOne) {
  const std::uint64_t cases = num_cases(4000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed + 5000000);
    const Shape shape = testing::random_shape(random, 200);
    std::vector<Box> boxes = testing::random_partition(random, shape, 12);
    for (std::size_t i = boxes.size(); i > 1; --i) {
      std::swap(boxes[i - 1],
                boxes[static_cast<std::size_t>(random.in(0, static_cast<std::int64_t>(i) - 1))]);
    }
    const std::string name = "seed " + std::to_string(seed) + ": shape " + to_string(shape);
    ASSERT_EQ(refusal(shape, boxes), "accepted") << name;

    const auto victim =
        static_cast<std::size_t>(random.in(0, static_cast<std::int64_t>(boxes.size()) - 1));
    const int axis = static_cast<int>(random.in(0, shape.num_axes - 1));
    std::vector<Box> hole = boxes;
    hole.erase(hole.begin() + static_cast<std::ptrdiff_t>(victim));
    ASSERT_TRUE(says(refusal(shape, hole), "cover all")) << name;
    std::vector<Box> doubled = boxes;
    doubled.push_back(boxes[victim]);
    ASSERT_TRUE(says(refusal(shape, doubled), "must not overlap")) << name;
    std::vector<Box> moved = boxes;  // same volume, but somewhere it overlaps or leaves the tensor
    moved[victim].begin[axis] += random.in(0, 1) == 1 ? 1 : -1;
    ASSERT_NE(refusal(shape, moved), "accepted") << name;
    std::vector<Box> grown = boxes;
    ++grown[victim].size[axis];
    ASSERT_NE(refusal(shape, grown), "accepted") << name;
    std::vector<Box> flat = boxes;
    flat[victim].size[axis] = 0;
    ASSERT_TRUE(says(refusal(shape, flat), "must lie inside")) << name;
  }
}

TEST(TileSetProperty, FindsTheTilesUnderABoxInAscendingOrder) {
  const std::uint64_t cases = num_cases(4000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed + 6000000);
    const testing::TwoCuts cuts = testing::random_cuts(random, 150);
    const Shape shape = cuts.data.shape;
    const TileSet sets[] = {TileSet::plain(cuts.data),
                            TileSet::table(shape, testing::random_partition(random, shape, 10))};
    Box box = testing::whole(shape);
    for (int a = 0; a < shape.num_axes; ++a) {
      box.begin[a] = random.in(0, shape[a] - 1);
      box.size[a] = random.in(1, shape[a] - box.begin[a]);
    }
    for (const TileSet& set : sets) {
      std::vector<Box> tiles;
      for (std::int64_t t = 0; t < set.count(); ++t) tiles.push_back(set.box(t));
      const testing::Relation expected = testing::relation_of_boxes({box}, tiles);
      std::vector<std::int64_t> met;
      set.for_each_meeting(box, [&](std::int64_t t) { met.push_back(t); });
      ASSERT_EQ(met, expected.data_of_kernel[0])
          << "seed " << seed << ": " << set.describe() << ", box " << to_string(box);
    }
  }
}

}  // namespace
}  // namespace tileweave

#include "tileweave/tile/tiling.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/tile/brute_force.h"
#include "tests/tile/random_cases.h"

namespace tileweave {
namespace {

using testing::num_cases;
using testing::Painted;
using testing::Random;
using testing::random_cuts;
using testing::random_large_cuts;
using testing::Relation;
using testing::TwoCuts;

// The paper's Figure 3: Y is 256 x 384, kernel tiles 128 x 128, data tiles of 64 whole rows.
constexpr Shape kFigure3Shape = {256, 384};
constexpr Coord kFigure3Kernel = {128, 128};
constexpr Coord kFigure3Data = {64, 384};

TEST(Tiling, Figure3MapsKernelTileOneOneToDataTilesTwoAndThree) {
  const Tiling kernel{kFigure3Shape, kFigure3Kernel};
  const Tiling data{kFigure3Shape, kFigure3Data};
  const TileSpan span = tiles_meeting(data, kernel.box({1, 1}));
  EXPECT_EQ(span.first, (Coord{1 * 128 / 64, 0}));
  EXPECT_EQ(span.extent, (Coord{2, 1}));
  EXPECT_EQ(data.linear(span.first), 2);
}

TEST(Tiling, Figure3GivesEveryDataTileThreeSignals) {
  const auto target = calc_target(kFigure3Data, kFigure3Shape, kFigure3Kernel);
  for (std::int64_t d = 0; d < 4; ++d) EXPECT_EQ(target({d}), 3) << "data tile " << d;
}

TEST(Tiling, IsUsableInConstantExpressions) {
  static_assert(calc_target(kFigure3Data, kFigure3Shape, kFigure3Kernel)(Coord{2, 0}) == 3);
  static_assert(calc_extent(kFigure3Data, kFigure3Shape, kFigure3Kernel)(Coord{1, 1}) ==
                Coord{2, 1});
  static_assert(Tiling{{1000, 7}, {64, 7}}.count() == 16);
  static_assert(Tiling{{1000, 7}, {64, 7}}.box({15, 0}).size == Coord{40, 7});
}

TEST(Tiling, TreatsMissingTrailingAxesAsZero) {
  const Tiling grid{{10, 10, 10}, {3, 4, 5}};
  EXPECT_EQ(grid.linear({2}), grid.linear({2, 0, 0}));
  EXPECT_EQ(grid.box({2}), grid.box({2, 0, 0}));
  EXPECT_TRUE(grid.inside({3}));
  EXPECT_FALSE(grid.inside({4}));
  EXPECT_TRUE(grid.inside({0, 0, 0, 0}));
  EXPECT_FALSE(grid.inside({0, 0, 0, 1}));
  EXPECT_FALSE(grid.inside({-1, 0, 0}));
}

TEST(Tiling, SaysWhatIsInvalid) {
  EXPECT_EQ(invalid({{4, 4}, {2, 2}}), nullptr);
  EXPECT_NE(invalid({{}, {}}), nullptr);
  EXPECT_NE(invalid({{4, 4}, {2}}), nullptr);
  EXPECT_NE(invalid({{4, 0}, {2, 2}}), nullptr);
  EXPECT_NE(invalid({{4, 4}, {2, 0}}), nullptr);
  EXPECT_NE(invalid({{4, -4}, {2, 2}}), nullptr);
  EXPECT_EQ(invalid({{std::int64_t{1} << 31, std::int64_t{1} << 31}, {1, 1}}), nullptr);
  EXPECT_NE(invalid({{std::int64_t{1} << 31, (std::int64_t{1} << 31) + 1}, {1, 1}}), nullptr);
  EXPECT_NE(invalid({{4}, {(std::int64_t{1} << 62) + 1}}), nullptr);
}

/// What is wrong with the boxes, indices and coordinates of one cut, or nothing.
std::optional<std::string> check_cut(const Tiling& cut) {
  const Painted painted(cut);
  if (!(cut.grid() == painted.grid())) return "grid is " + to_string(cut.grid());
  std::vector<std::int64_t> seen(static_cast<std::size_t>(cut.count()), 0);
  for (std::int64_t t = 0; t < cut.count(); ++t) {
    const Coord coord = cut.coord(t);
    if (cut.linear(coord) != t) return "linear(coord(" + std::to_string(t) + ")) differs";
    if (!cut.inside(coord)) return "coordinate " + to_string(coord) + " is not inside";
    bool owned = true;
    testing::for_each_element(cut.box(coord), [&](const Coord& element) {
      owned = owned && painted.tile_at(element) == t;
      ++seen[static_cast<std::size_t>(t)];
    });
    if (!owned) return "box of tile " + to_string(coord) + " holds foreign elements";
  }
  std::int64_t total = 0;
  for (const std::int64_t n : seen) total += n;
  if (total != cut.shape.volume()) return "boxes hold " + std::to_string(total) + " elements";
  return std::nullopt;
}

std::vector<std::int64_t> expand(const TileSpan& span, const Tiling& grid) {
  std::vector<std::int64_t> tiles;
  Box box;
  box.begin = span.first;
  box.size = span.extent;
  testing::for_each_element(box, [&](const Coord& at) { tiles.push_back(grid.linear(at)); });
  return tiles;
}

/// Compares tiles_meeting, calc_extent and calc_target with an enumerated relation.
std::optional<std::string> check_relation(const TwoCuts& cuts, const Relation& relation) {
  const auto extent = calc_extent(cuts.data.tile, cuts.data.shape, cuts.kernel.tile);
  const auto target = calc_target(cuts.data.tile, cuts.data.shape, cuts.kernel.tile);
  if (cuts.kernel.count() != static_cast<std::int64_t>(relation.data_of_kernel.size()) ||
      cuts.data.count() != static_cast<std::int64_t>(relation.kernels_of_data.size())) {
    return "number of tiles";
  }
  for (std::int64_t k = 0; k < cuts.kernel.count(); ++k) {
    const Coord tile = cuts.kernel.coord(k);
    const TileSpan span = tiles_meeting(cuts.data, cuts.kernel.box(tile));
    const auto& expected = relation.data_of_kernel[static_cast<std::size_t>(k)];
    if (expand(span, cuts.data) != expected) return "data tiles of kernel tile " + to_string(tile);
    if (!(extent(tile) == span.extent)) return "calc_extent of kernel tile " + to_string(tile);
  }
  for (std::int64_t d = 0; d < cuts.data.count(); ++d) {
    const auto expected = relation.kernels_of_data[static_cast<std::size_t>(d)].size();
    if (target(cuts.data.coord(d)) != static_cast<std::int64_t>(expected)) {
      return "calc_target of data tile " + std::to_string(d);
    }
  }
  return std::nullopt;
}

TEST(TilingProperty, AgreesWithEnumeratingEveryElement) {
  const std::uint64_t cases = num_cases(10000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed);
    const TwoCuts cuts = random_cuts(random, 300);
    ASSERT_EQ(invalid(cuts.kernel), nullptr);
    ASSERT_EQ(invalid(cuts.data), nullptr);
    for (const Tiling* cut : {&cuts.kernel, &cuts.data}) {
      const auto wrong = check_cut(*cut);
      ASSERT_FALSE(wrong) << *wrong << "; seed " << seed << ": " << cuts.describe();
    }
    const auto wrong = check_relation(cuts, testing::relation_by_elements(cuts.kernel, cuts.data));
    ASSERT_FALSE(wrong) << *wrong << "; seed " << seed << ": " << cuts.describe();
  }
}

TEST(TilingProperty, MeetsExactlyTheTilesUnderAnyBox) {
  const std::uint64_t cases = num_cases(10000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed);
    const Tiling grid = random_cuts(random, 300).data;
    Box box;
    box.begin.num_axes = box.size.num_axes = grid.shape.num_axes;
    for (int a = 0; a < grid.shape.num_axes; ++a) {
      box.begin[a] = random.in(0, grid.shape[a] - 1);
      box.size[a] = random.in(1, grid.shape[a] - box.begin[a]);
    }
    const Painted painted(grid);
    std::set<std::int64_t> expected;
    testing::for_each_element(
        box, [&](const Coord& element) { expected.insert(painted.tile_at(element)); });
    ASSERT_EQ(expand(tiles_meeting(grid, box), grid),
              std::vector<std::int64_t>(expected.begin(), expected.end()))
        << "seed " << seed << ": box " << to_string(box) << " of " << to_string(grid.shape)
        << " by " << to_string(grid.tile);
  }
}

TEST(TilingProperty, IsExactForExtentsOver2To31) {
  const std::uint64_t cases = num_cases(2000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed);
    const TwoCuts cuts = random_large_cuts(random);
    ASSERT_EQ(invalid(cuts.kernel), nullptr) << cuts.describe();
    ASSERT_GT(cuts.kernel.shape[0], std::int64_t{1} << 31);
    const auto wrong = check_relation(cuts, testing::relation_by_intervals(cuts.kernel, cuts.data));
    ASSERT_FALSE(wrong) << *wrong << "; seed " << seed << ": " << cuts.describe();
  }
}

}  // namespace
}  // namespace tileweave

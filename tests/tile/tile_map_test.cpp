#include "tileweave/tile/tile_map.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/tile/brute_force.h"
#include "tests/tile/random_cases.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

using testing::num_cases;
using testing::Random;
using testing::Relation;
using testing::TwoCuts;

Coord unit_coord(const Coord& grid, std::int64_t index) {
  return Tiling{grid, Coord::filled(grid.num_axes, 1)}.coord(index);
}

std::vector<std::int32_t> narrow(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

/// The first kernel tile for which `map` disagrees with the relation, or nothing.
std::optional<std::string> check_map(const char* name, const TileMap& map, const Relation& relation,
                                     const LaunchArgs& args = {}) {
  const auto count = static_cast<std::int64_t>(relation.data_of_kernel.size());
  if (map.kernel_grid().volume() != count) return std::string(name) + " map: kernel grid";
  for (std::int64_t k = 0; k < count; ++k) {
    const Coord tile = unit_coord(map.kernel_grid(), k);
    if (map.tiles_of(tile, args) != relation.data_of_kernel[static_cast<std::size_t>(k)]) {
      return std::string(name) + " map: kernel tile " + to_string(tile);
    }
  }
  return std::nullopt;
}

std::optional<std::string> check_target(const char* name, const TargetMap& target,
                                        const TileSet& data, const Relation& relation,
                                        const LaunchArgs& args = {}) {
  for (std::size_t d = 0; d < relation.kernels_of_data.size(); ++d) {
    const auto index = static_cast<std::int64_t>(d);
    if (target.of(data, index, args) !=
        static_cast<std::int64_t>(relation.kernels_of_data[d].size())) {
      return std::string(name) + " target: data tile " + std::to_string(d);
    }
  }
  return std::nullopt;
}

std::optional<std::string> check_three_forms(const TwoCuts& cuts, const Relation& relation) {
  const TileSet data = TileSet::plain(cuts.data);
  const Coord grid = cuts.kernel.grid();

  if (auto wrong = check_map("plain", TileMap::plain(cuts.kernel, cuts.data), relation)) {
    return wrong;
  }
  const TileMap derived = TileMap::derive(TileSet::plain(cuts.kernel), data);
  if (derived.form() != MapForm::kPlain) return "two grids must derive a plain map";
  if (auto wrong = check_map("derived", derived, relation)) return wrong;

  std::vector<std::int32_t> offsets = {0};
  std::vector<std::int32_t> tiles;
  for (const auto& list : relation.data_of_kernel) {
    for (const std::int64_t t : list) tiles.push_back(static_cast<std::int32_t>(t));
    offsets.push_back(static_cast<std::int32_t>(tiles.size()));
  }
  if (auto wrong = check_map("table", TileMap::table(grid, offsets, tiles), relation)) return wrong;
  const TileMap filled = TileMap::table_from(grid, [&](const Coord& k) {
    return narrow(relation.data_of_kernel[static_cast<std::size_t>(cuts.kernel.linear(k))]);
  });
  if (auto wrong = check_map("filled table", filled, relation)) return wrong;

  // The functor reads the sizes of its data tile from the launch arguments.
  LaunchArgs args;
  args.v[0] = cuts.data.tile[0];
  const TileMap functor =
      TileMap::functor(grid, cuts.data, [&](const Coord& k, const LaunchArgs& given) {
        Tiling cut = cuts.data;
        cut.tile[0] = given.v[0];
        return tiles_meeting(cut, cuts.kernel.box(k));
      });
  if (auto wrong = check_map("functor", functor, relation, args)) return wrong;

  if (auto wrong =
          check_target("plain", TargetMap::plain(cuts.kernel, cuts.data), data, relation)) {
    return wrong;
  }
  std::vector<std::int64_t> arrivals;
  for (const auto& list : relation.kernels_of_data) {
    arrivals.push_back(static_cast<std::int64_t>(list.size()));
  }
  if (auto wrong = check_target("table", TargetMap::table(arrivals), data, relation)) return wrong;
  const auto functor_target = TargetMap::functor([&](const Coord& d, const LaunchArgs& given) {
    return arrivals[static_cast<std::size_t>(cuts.data.linear(d))] + given.v[0] - cuts.data.tile[0];
  });
  return check_target("functor", functor_target, data, relation, args);
}

TEST(TileMapProperty, ThreeFormsAgreeWithEnumeratingEveryElement) {
  const std::uint64_t cases = num_cases(10000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed + 1000000);
    const TwoCuts cuts = testing::random_cuts(random, 200);
    const auto wrong =
        check_three_forms(cuts, testing::relation_by_elements(cuts.kernel, cuts.data));
    ASSERT_FALSE(wrong) << *wrong << "; seed " << seed << ": " << cuts.describe();
  }
}

TEST(TileMapProperty, ThreeFormsAreExactForExtentsOver2To31) {
  const std::uint64_t cases = num_cases(1000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed + 2000000);
    const TwoCuts cuts = testing::random_large_cuts(random);
    const auto wrong =
        check_three_forms(cuts, testing::relation_by_intervals(cuts.kernel, cuts.data));
    ASSERT_FALSE(wrong) << *wrong << "; seed " << seed << ": " << cuts.describe();
  }
}

TEST(TileMapProperty, DerivesTablesForIrregularCuts) {
  const std::uint64_t cases = num_cases(3000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed + 3000000);
    const Shape shape = testing::random_shape(random, 120);
    const std::vector<Box> kernel = testing::random_partition(random, shape, 8);
    const std::vector<Box> data = testing::random_partition(random, shape, 8);
    const TileSet kernel_set = TileSet::table(shape, kernel);
    const TileSet data_set = TileSet::table(shape, data);
    const TileMap map = TileMap::derive(kernel_set, data_set);
    ASSERT_EQ(map.form(), MapForm::kTable);
    const Relation relation = testing::relation_of_boxes(kernel, data);
    const auto wrong = check_map("derived", map, relation);
    ASSERT_FALSE(wrong) << *wrong << "; seed " << seed << ": shape " << to_string(shape);
    ASSERT_EQ(map.offsets().size(), kernel.size() + 1);
  }
}

/// Waiting through a view waits for exactly the base tiles that the view's tiles touch.
TEST(TileMapProperty, ViewsWaitForEveryBaseTileTheyTouch) {
  const std::uint64_t cases = num_cases(3000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed + 4000000);
    const TwoCuts cuts = testing::random_cuts(random, 120);  // kernel over the view's tiles
    const Shape shape = cuts.kernel.shape;
    const TileSet view = TileSet::plain(cuts.data);
    const bool irregular = random.in(0, 1) == 1;
    const std::vector<Box> base_boxes = testing::random_partition(random, shape, 9);
    Tiling base_grid{shape, shape};
    for (int a = 0; a < shape.num_axes; ++a) {
      base_grid.tile[a] = testing::random_tile(random, shape[a]);
    }
    const TileSet base = irregular ? TileSet::table(shape, base_boxes) : TileSet::plain(base_grid);
    const TileMap composed = compose_with_view(TileMap::plain(cuts.kernel, cuts.data), view, base);

    std::vector<Box> view_list;
    std::vector<Box> base_list;
    for (std::int64_t i = 0; i < view.count(); ++i) view_list.push_back(view.box(i));
    for (std::int64_t i = 0; i < base.count(); ++i) base_list.push_back(base.box(i));
    const Relation to_view = testing::relation_by_elements(cuts.kernel, cuts.data);
    const Relation to_base = testing::relation_of_boxes(view_list, base_list);
    Relation expected;
    expected.data_of_kernel.resize(to_view.data_of_kernel.size());
    expected.kernels_of_data.resize(base_list.size());
    for (std::size_t k = 0; k < to_view.data_of_kernel.size(); ++k) {
      for (const std::int64_t v : to_view.data_of_kernel[k]) {
        for (const std::int64_t b : to_base.data_of_kernel[static_cast<std::size_t>(v)]) {
          expected.add(static_cast<std::int64_t>(k), b);
        }
      }
    }
    expected.finish();
    const auto wrong = check_map("composed", composed, expected);
    ASSERT_FALSE(wrong) << *wrong << "; seed " << seed << ": " << cuts.describe();
  }
}

TEST(TileMap, TakesAFunctorWithFewerAxesAsZeroOnTheRest) {
  // Data tiles cut rows and columns, the functor speaks of rows alone: column 0 of each.
  const Tiling data{{8, 8}, {2, 4}};
  const TileMap map = TileMap::functor({2}, data, [](const Coord& k, const LaunchArgs&) {
    return TileSpan{{k[0] * 2}, {2}};
  });
  EXPECT_EQ(map.tiles_of({0}), (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(map.tiles_of({1}), (std::vector<std::int64_t>{4, 6}));
}

TEST(TileMap, RefusesTilingsThatCutDifferentShapes) {
  EXPECT_THROW(TileMap::plain({{8, 8}, {2, 2}}, {{8, 9}, {2, 2}}), Error);
  EXPECT_THROW(TargetMap::plain({{8, 8}, {2, 2}}, {{8}, {2}}), Error);
  EXPECT_THROW(TileMap::derive(TileSet::plain({{8, 8}, {2, 2}}), TileSet::plain({{8}, {2}})),
               Error);
  EXPECT_THROW(compose_with_view(TileMap::plain({{8}, {2}}, {{8}, {2}}), TileSet::plain({{8}, {2}}),
                                 TileSet::plain({{9}, {2}})),
               Error);
}

TEST(TileMap, RefusesInvalidTilings) {
  EXPECT_THROW(TileMap::plain({{8}, {0}}, {{8}, {2}}), Error);
  EXPECT_THROW(TileMap::plain({{8}, {2}}, {{8}, {0}}), Error);
  EXPECT_THROW(TargetMap::plain({{8}, {-1}}, {{8}, {2}}), Error);
  EXPECT_THROW(TargetMap::plain({{8}, {2}}, {{8}, {0}}), Error);
  EXPECT_THROW(TileMap::functor({2}, {{8}, {0}}, {}), Error);
  EXPECT_THROW(TargetMap::constant(-1), Error);
}

TEST(TileMap, RefusesTablesWhoseOffsetsDoNotRiseToTheEnd) {
  EXPECT_NO_THROW(TileMap::table({2}, {0, 1, 2}, {0, 1}));
  EXPECT_NO_THROW(TileMap::table({2}, {0, 0, 2}, {0, 1})) << "a kernel tile may meet nothing";
  EXPECT_THROW(TileMap::table({2}, {0, 2}, {0, 1}), Error);
  EXPECT_THROW(TileMap::table({2}, {1, 1, 2}, {0, 1}), Error);
  EXPECT_THROW(TileMap::table({2}, {0, 2, 1}, {0, 1}), Error);
  EXPECT_THROW(TileMap::table({2}, {0, 1, 3}, {0, 1}), Error);
  EXPECT_THROW(TileMap::table({2}, {}, {}), Error);
}

TEST(TileMap, RefusesAViewWhoseMapNamesTilesThatDoNotExist) {
  const TileSet cut = TileSet::table({4}, {{{0}, {2}}, {{2}, {2}}});
  EXPECT_THROW(compose_with_view(TileMap::table({1}, {0, 1}, {2}), cut, cut), Error);
  EXPECT_THROW(compose_with_view(TileMap::table({1}, {0, 1}, {-1}), cut, cut), Error);
}

TEST(TargetMap, RefusesTilesOutsideItsTable) {
  const TileSet data = TileSet::plain({{8}, {2}});
  const TargetMap target = TargetMap::table({1, 2});
  EXPECT_EQ(target.of(data, 1), 2);
  EXPECT_THROW(target.of(data, 2), Error);
  EXPECT_THROW(target.of(data, -1), Error);
}

TEST(TargetMap, ConstantIsTheSameForEveryTile) {
  const TargetMap target = TargetMap::constant(7);
  ASSERT_TRUE(target.is_constant());
  EXPECT_EQ(target.constant_value(), 7);
  EXPECT_EQ(target.of(TileSet::plain({{8}, {2}}), 3), 7);
  EXPECT_FALSE(TargetMap::plain({{8}, {2}}, {{8}, {2}}).is_constant());
}

}  // namespace
}  // namespace tileweave

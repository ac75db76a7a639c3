#include "tileweave/sync/tile_walk.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/sync/operands.h"
#include "tests/tile/brute_force.h"
#include "tests/tile/random_cases.h"

namespace tileweave {
namespace {

using testing::num_cases;
using testing::plain_operand;
using testing::Random;
using testing::Relation;
using testing::TwoCuts;

std::vector<std::int64_t> list(const TileWalk& walk) {
  std::vector<std::int64_t> tiles;
  for (std::int64_t i = 0; i < walk.count; ++i) tiles.push_back(walk.at(i));
  return tiles;
}

/// Maps compiled into a kernel. The data tile of the first axis comes with the launch.
struct GivenCuts {
  static inline TwoCuts cuts;

  static Tiling data_of(const LaunchArgs& args) {
    Tiling data = cuts.data;
    data.tile[0] = args.v[0];
    return data;
  }
  static TileSpan map(int /*operand*/, const Coord& kernel_tile, const LaunchArgs& args) {
    return tiles_meeting(data_of(args), cuts.kernel.box(kernel_tile));
  }
  static std::uint32_t target(int /*operand*/, const Coord& data_tile, const LaunchArgs& args) {
    return static_cast<std::uint32_t>(
        tiles_meeting(cuts.kernel, data_of(args).box(data_tile)).count());
  }
};

template <class Maps>
std::optional<std::string> check(const char* name, const OperandSlot& op, const Tiling& kernel,
                                 const Relation& relation, const LaunchArgs& args = {}) {
  for (std::size_t k = 0; k < relation.data_of_kernel.size(); ++k) {
    const Coord tile = kernel.coord(static_cast<std::int64_t>(k));
    if (list(Maps::walk(op.sync, op.tiles, 0, tile, args)) != relation.data_of_kernel[k]) {
      return std::string(name) + " walk of kernel tile " + to_string(tile);
    }
  }
  for (std::size_t d = 0; d < relation.kernels_of_data.size(); ++d) {
    if (Maps::target(op.sync, op.tiles, 0, static_cast<std::int64_t>(d), args) !=
        relation.kernels_of_data[d].size()) {
      return std::string(name) + " target of data tile " + std::to_string(d);
    }
  }
  return std::nullopt;
}

/// Every device form against the enumerated relation, and against the host forms.
std::optional<std::string> check_forms(const TwoCuts& cuts, const Relation& relation) {
  const OperandSlot plain = plain_operand(cuts.kernel, cuts.data, cuts.kernel);
  if (auto wrong = check<ContextMaps>("plain", plain, cuts.kernel, relation)) return wrong;
  OperandSlot wide = plain;
  wide.sync.flags |= OperandSync::kWide;
  if (auto wrong = check<ContextMaps>("wide", wide, cuts.kernel, relation)) return wrong;
  OperandSlot unmarked = plain;  // without the short cut for tensors of one data tile
  unmarked.sync.flags &= ~OperandSync::kSingleTile;
  if (auto wrong = check<ContextMaps>("unmarked", unmarked, cuts.kernel, relation)) return wrong;

  const TileMap map = TileMap::table_from(cuts.kernel.grid(), [&](const Coord& k) {
    const auto tiles = TileMap::plain(cuts.kernel, cuts.data).tiles_of(k);
    return std::vector<std::int32_t>(tiles.begin(), tiles.end());
  });
  std::vector<std::uint32_t> targets;
  const TargetMap target = TargetMap::plain(cuts.kernel, cuts.data);
  for (std::int64_t d = 0; d < cuts.data.count(); ++d) {
    targets.push_back(static_cast<std::uint32_t>(target.of(TileSet::plain(cuts.data), d)));
  }
  const OperandSlot table = testing::table_operand(map, targets);
  if (auto wrong = check<ContextMaps>("table", table, cuts.kernel, relation)) return wrong;

  GivenCuts::cuts = cuts;
  LaunchArgs args;
  args.v[0] = cuts.data.tile[0];
  return check<FunctorMaps<GivenCuts>>("functor", plain, cuts.kernel, relation, args);
}

TEST(TileWalkProperty, DeviceFormsAgreeWithEnumeratingEveryElement) {
  const std::uint64_t cases = num_cases(10000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed + 8000000);
    const TwoCuts cuts = testing::random_cuts(random, 200);
    const auto wrong = check_forms(cuts, testing::relation_by_elements(cuts.kernel, cuts.data));
    ASSERT_FALSE(wrong) << *wrong << "; seed " << seed << ": " << cuts.describe();
  }
}

TEST(TileWalkProperty, WideFormsAreExactForExtentsOver2To31) {
  const std::uint64_t cases = num_cases(1000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed + 9000000);
    const TwoCuts cuts = testing::random_large_cuts(random);
    ASSERT_NE(plain_operand(cuts.kernel, cuts.data, cuts.kernel).sync.flags & OperandSync::kWide,
              0U);
    const auto wrong = check_forms(cuts, testing::relation_by_intervals(cuts.kernel, cuts.data));
    ASSERT_FALSE(wrong) << *wrong << "; seed " << seed << ": " << cuts.describe();
  }
}

TEST(TileWalkProperty, NarrowFormsAreExactUpToTheirLimit) {
  const std::uint64_t cases = num_cases(1000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Random random(seed + 10000000);
    TwoCuts cuts;
    const std::int64_t limit = (std::int64_t{1} << 31) - 1;
    cuts.kernel.shape = cuts.data.shape = {limit - random.in(0, 3), random.in(1, 5)};
    for (Tiling* cut : {&cuts.kernel, &cuts.data}) {
      cut->tile = {min64(limit, limit / random.in(1, 6) + random.in(-1, 1)), random.in(1, 5)};
    }
    ASSERT_EQ(plain_operand(cuts.kernel, cuts.data, cuts.kernel).sync.flags & OperandSync::kWide,
              0U);
    const auto wrong = check_forms(cuts, testing::relation_by_intervals(cuts.kernel, cuts.data));
    ASSERT_FALSE(wrong) << *wrong << "; seed " << seed << ": " << cuts.describe();
  }
}

TEST(TileWalk, WalksNothingWhereATableListsNothing) {
  const TileMap map = TileMap::table({3}, {0, 2, 2, 3}, {4, 1, 0});
  const OperandSlot op = testing::table_operand(map, {});
  EXPECT_EQ(list(ContextMaps::walk(op.sync, op.tiles, 0, {0}, {})),
            (std::vector<std::int64_t>{4, 1}));
  EXPECT_EQ(list(ContextMaps::walk(op.sync, op.tiles, 0, {1}, {})), (std::vector<std::int64_t>{}));
  EXPECT_EQ(list(ContextMaps::walk(op.sync, op.tiles, 0, {2}, {})), (std::vector<std::int64_t>{0}));
}

TEST(TileWalk, TakesMissingTrailingAxesAsZero) {
  const Tiling kernel{{8, 8, 8}, {2, 8, 8}};
  const Tiling data{{8, 8, 8}, {3, 4, 8}};
  const OperandSlot op = plain_operand(kernel, data, kernel);
  EXPECT_EQ(list(ContextMaps::walk(op.sync, op.tiles, 0, {1}, {})),
            list(ContextMaps::walk(op.sync, op.tiles, 0, {1, 0, 0}, {})));
}

TEST(TileWalk, TakesTheTargetFromTheTableElseAsMarkedFromTheGridsElseTheConstant) {
  const Tiling cut{{8}, {2}};
  OperandSlot op = plain_operand(cut, cut, cut);
  EXPECT_EQ(ContextMaps::target(op.sync, op.tiles, 0, 1, {}), 1U);
  op.sync.target = 5;
  op.sync.flags &= ~OperandSync::kClosedFormTarget;
  EXPECT_EQ(ContextMaps::target(op.sync, op.tiles, 0, 1, {}), 5U);
  op.sync.target = 0;
  EXPECT_EQ(ContextMaps::target(op.sync, op.tiles, 0, 1, {}), 0U)
      << "a constant may ask for no arrivals";
  const std::uint32_t targets[] = {7, 0, 9, 9};
  op.tiles.targets = targets;
  EXPECT_EQ(ContextMaps::target(op.sync, op.tiles, 0, 1, {}), 0U)
      << "a table may ask for no arrivals";
}

/// A functor that speaks of rows alone on a grid of rows and columns.
struct RowsOnly {
  static TileSpan map(int /*operand*/, const Coord& k, const LaunchArgs& /*args*/) {
    return {{k[0] * 2}, {2}};
  }
  static std::uint32_t target(int /*operand*/, const Coord& /*d*/, const LaunchArgs& /*args*/) {
    return 1;
  }
};

TEST(TileWalk, FunctorWithFewerAxesNamesTheSameTilesAsItsHostTwin) {
  const Tiling data{{8, 8}, {2, 4}};
  const OperandSlot op = plain_operand(data, data, data);
  const TileMap twin = TileMap::functor(
      {2}, data, [](const Coord& k, const LaunchArgs& args) { return RowsOnly::map(0, k, args); });
  for (std::int64_t k = 0; k < 2; ++k) {
    EXPECT_EQ(list(FunctorMaps<RowsOnly>::walk(op.sync, op.tiles, 0, {k}, {})), twin.tiles_of({k}));
  }
}

}  // namespace
}  // namespace tileweave

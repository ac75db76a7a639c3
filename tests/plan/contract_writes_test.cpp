// Every fault of a write, a tiling, an index or an order planted, and a right neighbour of each.
#include <gtest/gtest.h>

#include "tests/plan/small_plans.h"

namespace tileweave {
namespace {

using testing::grid;
using testing::node;
using testing::read;
using testing::sentences;
using testing::write;

using Kinds = std::vector<FaultKind>;

class ContractFixture : public ::testing::Test {
 protected:
  std::string check() {
    const ContractReport report = check_contract(plan_);
    kinds_.clear();
    for (const Fault& fault : report.faults) kinds_.push_back(fault.kind);
    return sentences(report.faults);
  }
  /// The sentence of the only node `spec` of a plan.
  std::string check_alone(NodeSpec spec) {
    plan_.nodes().clear();
    plan_.add(std::move(spec));
    return check();
  }

  Shape shape_ = {8, 4};
  TileSet pairs_ = grid({8, 4}, {2, 4});
  Plan plan_;
  TensorId y_ = plan_.tensor({.name = "Y", .shape = shape_, .tiles = {2, 4}});
  TensorId s_ = plan_.tensor({.name = "S", .shape = shape_, .kind = TensorKind::kState});
  TensorId w_ = plan_.tensor({.name = "W", .shape = shape_, .kind = TensorKind::kConstant});
  Kinds kinds_;
};

using ContractWrites = ContractFixture;
using ContractTilings = ContractFixture;
using ContractIndices = ContractFixture;
using ContractOrders = ContractFixture;

TEST_F(ContractWrites, NamesTwoWorksOfOneKernelTile) {
  NodeSpec spec = node("make", 4, {write(y_, pairs_, 0)});
  spec.operands[0].tiles_of_work = [](std::int64_t w) {
    return std::vector<std::int64_t>{w == 3 ? 1 : w};
  };
  EXPECT_EQ(check_alone(spec),
            "node 0 `make` has works 1 and 3 write kernel tile 1 of `Y` without a declared "
            "reduction\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kDoubleWrite});
  spec.operands[0].reduction = Reduction::kLastArriver;
  spec.counter.arrivals = {1, 2, 1, 0};
  EXPECT_EQ(check_alone(spec), "");
}

TEST_F(ContractWrites, NamesManyWorksOfTheWholeTensor) {
  EXPECT_EQ(check_alone(node("make", 3, {write(y_)})),
            "node 0 `make` has works 0 and 1 write kernel tile 0 of `Y` without a declared "
            "reduction\n");
  EXPECT_EQ(check_alone(node("make", 1, {write(y_)})), "");
}

TEST_F(ContractWrites, NamesAWorkThatWritesOneKernelTileTwice) {
  NodeSpec spec = node("make", 2, {write(y_, pairs_, 0)});
  spec.operands[0].tiles_of_work = [](std::int64_t w) {
    return w == 0 ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{2, 3, 2};
  };
  EXPECT_EQ(check_alone(spec), "node 0 `make` has work 1 touch kernel tile 2 of `Y` twice\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kDoubleWrite});
  spec.operands[0].tiles_of_work = [](std::int64_t w) {
    return std::vector<std::int64_t>{2 * w, 2 * w + 1};
  };
  EXPECT_EQ(check_alone(spec), "");
}

TEST_F(ContractWrites, NamesTwoNodesThatWriteOneElement) {
  plan_.add(node("a", 4, {write(y_, pairs_, 0)}));
  NodeSpec b = node("b", 1, {write(y_, grid(shape_, {3, 1}), 0)});
  b.operands[0].tiles_of_work = [](std::int64_t) { return std::vector<std::int64_t>{11}; };
  plan_.add(b);
  EXPECT_EQ(check(), "node 1 `b` writes [6:8, 3:4] of `Y`, which node 0 `a` has written\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kDoubleWrite});
  plan_.nodes()[0].num_works = 3;
  EXPECT_EQ(check(), "");
}

TEST_F(ContractWrites, NamesTwoOperandsOfOneNodeThatWriteOneElement) {
  EXPECT_EQ(check_alone(node("a", 4, {write(y_, pairs_, 0), write(y_, grid(shape_, {1, 4}))})),
            "node 0 `a` writes [0:1, 0:4] of `Y`, which it writes as operand 0 too\n");
}

TEST_F(ContractWrites, NamesOverlappingKernelTilesOfATable) {
  const auto boxes = [&](std::int64_t second_begin) {
    return TileSet::loose_table(shape_, {{{0, 0}, {3, 4}}, {{second_begin, 0}, {4, 4}}});
  };
  EXPECT_EQ(check_alone(node("a", 2, {write(y_, boxes(2), 0)})),
            "node 0 `a` writes [2:3, 0:4] of `Y` twice, as kernel tiles 0 and 1\n");
  EXPECT_EQ(check_alone(node("a", 2, {write(y_, boxes(3), 0)})), "");
  EXPECT_EQ(check_alone(node("a", 2, {read(s_, boxes(2))})), "");  // a halo read
}

TEST_F(ContractWrites, DoubleWritesOfAStateCountToo) {
  plan_.add(node("a", 1, {write(s_, pairs_)}));
  plan_.add(node("b", 1, {write(s_, pairs_)}));
  EXPECT_EQ(check(), "node 1 `b` writes [0:2, 0:4] of `S`, which node 0 `a` has written\n");
}

TEST_F(ContractWrites, NamesAWrittenConstant) {
  EXPECT_EQ(check_alone(node("a", 1, {write(w_)})), "node 0 `a` writes `W`, which is a constant\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kUndeclaredWrite});
  EXPECT_EQ(check_alone(node("a", 1, {read(w_)})), "");
}

TEST_F(ContractWrites, NamesASignalThroughAView) {
  NodeSpec spec = node("a", 4, {write(y_, pairs_, 0)});
  spec.operands[0].view = grid(shape_, {4, 4});
  EXPECT_EQ(check_alone(spec),
            "node 0 `a` signals `Y` through a view of 4x4 tiles of 8x4, but a view owns no "
            "semaphores\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kSignalThroughView});
}

TEST_F(ContractTilings, NamesAnAssumedTilingThatIsNotTheTensors) {
  NodeSpec spec = node("a", 4, {write(y_, pairs_, 0)});
  spec.operands[0].assumed_tiles = grid(shape_, {4, 4});
  EXPECT_EQ(check_alone(spec),
            "node 0 `a` was made for 4x4 tiles of 8x4 on `Y`, but the tensor has 2x4 tiles of "
            "8x4\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kTilingsDisagree});
  spec.operands[0].assumed_tiles = pairs_;
  EXPECT_EQ(check_alone(spec), "");
  plan_.nodes().clear();
  plan_.tile(y_, {});
  EXPECT_EQ(check_alone(spec),
            "node 0 `a` was made for 2x4 tiles of 8x4 on `Y`, but the tensor has no data tiles\n");
}

TEST_F(ContractTilings, AViewMustBeTheAssumedTiling) {
  NodeSpec spec = node("use", 4, {read(y_, pairs_, 0)});
  spec.operands[0].assumed_tiles = grid(shape_, {4, 4});
  spec.operands[0].view = grid(shape_, {4, 4});
  plan_.add(node("make", 4, {write(y_, pairs_, 0)}));
  plan_.add(spec);
  EXPECT_EQ(check(), "");
  plan_.nodes()[1].operands[0].view = grid(shape_, {4, 2});
  EXPECT_EQ(check(),
            "node 1 `use` was made for 4x4 tiles of 8x4 on `Y`, but its view has 4x2 tiles of "
            "8x4\n");
  plan_.nodes()[1].operands[0].assumed_tiles = {};
  plan_.nodes()[1].operands[0].view = grid({4, 8}, {4, 2});
  EXPECT_EQ(check(), "node 1 `use` views `Y` as 4x2 tiles of 4x8, but its shape is (8, 4)\n");
}

TEST_F(ContractTilings, NamesKernelTilesOverAnotherShape) {
  EXPECT_EQ(check_alone(node("a", 4, {write(y_, grid({8, 5}, {2, 5}), 0)})),
            "node 0 `a` cuts `Y` into 2x5 tiles of 8x5, but its shape is (8, 4)\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kTilingsDisagree});
}

TEST_F(ContractTilings, NamesARawMapForOtherTiles) {
  NodeSpec spec = node("a", 4, {write(y_, pairs_, 0)});
  spec.operands[0].map = TileMap::plain({shape_, {2, 4}}, {shape_, {4, 4}});
  EXPECT_EQ(check_alone(spec),
            "node 0 `a` maps kernel tiles of `Y` to 4x4 tiles of 8x4, but the tensor has 2x4 tiles "
            "of 8x4\n");
  spec.operands[0].map =
      TileMap::functor({4, 1}, {{8, 5}, {2, 5}}, [](const Coord& k, const LaunchArgs&) {
        return TileSpan{{k[0], 0}, {1, 1}};
      });
  EXPECT_EQ(check_alone(spec),
            "node 0 `a` maps kernel tiles of `Y` to 2x5 tiles of 8x5, but the tensor has 2x4 tiles "
            "of 8x4\n");
  spec.operands[0].map = TileMap::plain({shape_, {4, 4}}, {shape_, {2, 4}});
  EXPECT_EQ(check_alone(spec),
            "node 0 `a` maps kernel tiles of `Y` from a grid of (2, 1), but its kernel tiles form "
            "a grid of (4, 1)\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kTilingsDisagree});
  spec.operands[0].map = TileMap::plain({shape_, {2, 4}}, {shape_, {2, 4}});
  EXPECT_EQ(check_alone(spec), "");
}

TEST_F(ContractTilings, NamesARawMapForOtherKernelTilesOnTheSameGrid) {
  const TensorId t = plan_.tensor({.name = "T", .shape = {10}, .tiles = {5}});
  NodeSpec spec = node("a", 2, {write(t, grid({10}, {5}), 0)});
  spec.operands[0].map = TileMap::plain({{10}, {8}}, {{10}, {5}});
  EXPECT_EQ(check_alone(spec),
            "node 0 `a` maps kernel tiles of `T` as 8 tiles of 10, but its kernel tiles are 5 "
            "tiles of 10\n");
}

TEST_F(ContractIndices, NamesAKernelTileThatDoesNotExist) {
  EXPECT_EQ(check_alone(node("a", 6, {write(y_, pairs_, 0)})),
            "node 0 `a` has work 4 touch kernel tile 4 of `Y`, which has 4 kernel tiles (and so "
            "for 1 more touched tile)\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kIndexOverflow});
  NodeSpec spec = node("a", 4, {write(y_, pairs_, 0)});
  spec.operands[0].tiles_of_work = [](std::int64_t w) { return std::vector<std::int64_t>{w - 1}; };
  EXPECT_EQ(check_alone(spec),
            "node 0 `a` has work 0 touch kernel tile -1 of `Y`, which has 4 kernel tiles\n");
}

TEST_F(ContractIndices, NamesAMapEntryThatDoesNotExist) {
  NodeSpec spec = node("a", 4, {write(y_, pairs_, 0)});
  spec.operands[0].map = TileMap::table({4}, {0, 1, 2, 3, 4}, {0, 1, -1, 4});
  EXPECT_EQ(check_alone(spec),
            "node 0 `a` maps kernel tile 2 of `Y` to tile -1, but the tensor has 4 tiles (and so "
            "for 1 more mapped tile)\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kIndexOverflow});
  NodeSpec use = node("use", 4, {read(y_, pairs_, 0)});
  use.operands[0].view = grid(shape_, {4, 4});
  use.operands[0].map = TileMap::table({4}, {0, 1, 2, 3, 4}, {0, 0, 1, 2});
  plan_.nodes().clear();
  plan_.add(node("a", 4, {write(y_, pairs_, 0)}));
  plan_.add(use);
  EXPECT_EQ(check(),
            "node 1 `use` maps kernel tile 3 of `Y` to tile 2, but the view has 2 tiles\n"
            "node 1 `use` reads [6:8, 0:4] of `Y`, which node 0 `a` writes, without waiting on "
            "tile (3, 0) of `Y`\n");
  plan_.nodes()[1].operands[0].map = TileMap::table({4}, {0, 1, 2, 3, 4}, {0, 0, 1, 1});
  EXPECT_EQ(check(), "");
}

TEST_F(ContractIndices, NamesWhatDoesNotFit32Bits) {
  constexpr std::int64_t kTooMany = std::int64_t{1} << 31;
  EXPECT_EQ(check_alone(node("a", kTooMany, {write(s_)})),
            "node 0 `a` has 2147483648 works, more than 2^31 - 1\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kIndexOverflow});

  NodeSpec blocks = node("a", 1, {write(s_)});
  blocks.num_blocks = kTooMany;
  EXPECT_EQ(check_alone(blocks), "node 0 `a` has 2147483648 blocks, more than 2^31 - 1\n");

  const Shape wide = {kTooMany / 4, 8};
  const TensorId words =
      plan_.tensor({.name = "words", .shape = wide, .tiles = {2, 8}, .word_stride = 8});
  EXPECT_EQ(check_alone(node("a", 1, {write(words, grid(wide, {2, 8}), 0)})),
            "node 0 `a` synchronises on `words`, whose 268435456 data tiles of 8 words exceed "
            "2^31 - 1 words\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kIndexOverflow});

  const TensorId stamps = plan_.tensor({.name = "stamps", .shape = wide, .tiles = wide});
  EXPECT_EQ(check_alone(node("a", 1, {write(stamps, grid(wide, {1, 2}), 0)})),
            "node 0 `a` writes `stamps` in 2147483648 kernel tiles, more than 2^31 - 1\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kIndexOverflow});
  EXPECT_EQ(check_alone(node("a", 1, {write(stamps, grid(wide, {1, 3}), 0)})), "");
}

TEST_F(ContractIndices, ExtentsBeyond32BitsAreFine) {
  const Shape wide = {std::int64_t{5} << 31, 3};
  const TileSet tiles = grid(wide, {(std::int64_t{1} << 30) + 1, 2});
  const TensorId t =
      plan_.tensor({.name = "T", .shape = wide, .tiles = {std::int64_t{3} << 30, 3}});
  plan_.add(node("a", tiles.count(), {write(t, tiles, 0)}));
  plan_.add(node("b", 3, {read(t, grid(wide, {std::int64_t{1} << 32, 3}), 0)}));
  EXPECT_EQ(check(), "");
}

TEST_F(ContractOrders, NamesTheFirstWorkThatIsTwiceMissingOrUnknown) {
  NodeSpec spec = node("a", 4, {write(y_, pairs_, 0)});
  spec.order = TileOrder::table({0, 2, 1, 2});
  EXPECT_EQ(check_alone(spec), "node 0 `a` has work 2 twice in its order, at positions 1 and 3\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kOrderNotPermutation});
  spec.order = TileOrder::table({0, 2, 1});
  EXPECT_EQ(check_alone(spec),
            "node 0 `a` has an order of 3 positions for 4 works: work 3 is missing\n");
  spec.order = TileOrder::table({0, 4, 1, 2});
  EXPECT_EQ(check_alone(spec),
            "node 0 `a` has work 4 at position 1 of its order, but has 4 works\n");
  spec.order = TileOrder::table({0, 3, 1, 2, 3});
  EXPECT_EQ(check_alone(spec), "node 0 `a` has work 3 twice in its order, at positions 1 and 4\n");
  spec.order = TileOrder::table({3, 2, 1, 0});
  EXPECT_EQ(check_alone(spec), "");
  spec.order = TileOrder::rotation(-7);
  EXPECT_EQ(check_alone(spec), "");
}

TEST_F(ContractOrders, NamesANumberOfBlocksThatCannotTakeTheWorks) {
  NodeSpec spec = node("a", 4, {write(y_, pairs_, 0)});
  spec.num_blocks = 5;
  EXPECT_EQ(check_alone(spec),
            "node 0 `a` has 5 blocks for 4 works; from one to one per work are possible\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kOrderNotPermutation});
  spec.num_blocks = -1;
  EXPECT_EQ(check_alone(spec),
            "node 0 `a` has -1 blocks for 4 works; from one to one per work are possible\n");
  for (const std::int64_t right : {1, 3, 4}) {
    spec.num_blocks = right;
    EXPECT_EQ(check_alone(spec), "");
  }
}

}  // namespace
}  // namespace tileweave

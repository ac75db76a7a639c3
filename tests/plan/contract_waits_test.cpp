// Every fault of a wait planted, with its numbers, and a right neighbour of each.
#include <gtest/gtest.h>

#include "tests/plan/small_plans.h"

namespace tileweave {
namespace {

using testing::grid;
using testing::has_kind;
using testing::node;
using testing::read;
using testing::sentences;
using testing::write;

/// `Y = XW` in 2x2-element kernel tiles of an 8x4 tensor (8 works); data tiles of two rows (4, each
/// with 2 arrivals); `Z = YV` reads rows.
class ContractWaits : public ::testing::Test {
 protected:
  static constexpr int kRowsPerTile = 2;
  Shape shape_ = {8, 4};
  Plan plan_;
  TensorId y_ = plan_.tensor({.name = "Y", .shape = shape_, .tiles = {kRowsPerTile, 4}});
  TensorId z_ = plan_.tensor({.name = "Z", .shape = shape_});

  NodeSpec producer() { return node("Y = XW", 8, {write(y_, grid(shape_, {2, 2}), 0)}); }
  NodeSpec consumer(const Coord& kernel_tile = {2, 4}) {
    const TileSet tiles = grid(shape_, kernel_tile);
    return node("Z = YV", tiles.count(), {read(y_, tiles, 0), write(z_, tiles)});
  }
  std::string check() {
    const ContractReport report = check_contract(plan_);
    kinds_.clear();
    for (const Fault& fault : report.faults) kinds_.push_back(fault.kind);
    faults_ = report.faults;
    edges_ = report.edges;
    return sentences(report.faults);
  }
  std::vector<FaultKind> kinds_;
  std::vector<Fault> faults_;
  std::vector<DataEdge> edges_;
};

using Kinds = std::vector<FaultKind>;

TEST_F(ContractWaits, DerivedTargetsAlwaysEqualArrivals) {
  plan_.add(producer());
  plan_.add(consumer());
  EXPECT_EQ(check(), "");
  ASSERT_EQ(edges_.size(), 1U);
  EXPECT_EQ(edges_[0].from, 0);
  EXPECT_EQ(edges_[0].to, 1);
  EXPECT_EQ(edges_[0].tensor, y_);
  EXPECT_EQ(edges_[0].via, Via::kTiles);
}

TEST_F(ContractWaits, CountsArrivalsPerDataTileAsTheMapsMakeThem) {
  ContractChecker checker(plan_.tensors());
  EXPECT_EQ(checker.arrivals(y_), (std::vector<std::int64_t>{0, 0, 0, 0}));
  NodeSpec spec = producer();
  spec.operands[0].kernel_tiles = grid(shape_, {3, 3});  // 3 x 2 kernel tiles: rows 0-2, 3-5, 6-7
  spec.num_works = 6;
  EXPECT_TRUE(checker.add(0, spec).empty());
  EXPECT_EQ(checker.arrivals(y_), (std::vector<std::int64_t>{2, 4, 2, 2}));
  EXPECT_TRUE(checker.arrivals(z_).empty());
}

TEST_F(ContractWaits, NamesTheTileThatGetsTooFewArrivals) {
  plan_.add(producer());
  NodeSpec spec = consumer();
  spec.operands[0].target = TargetMap::table({2, 3, 2, 2});
  plan_.add(spec);
  EXPECT_EQ(check(),
            "node 1 `Z = YV` waits for 3 arrivals on tile (1, 0) of `Y`, but its producers make 2 "
            "(node 0 `Y = XW`)\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kTooFewArrivals});
  EXPECT_EQ(faults_[0].node, 1);
  EXPECT_EQ(faults_[0].tensor, y_);
  EXPECT_EQ(faults_[0].tile, 1);
}

TEST_F(ContractWaits, NamesTheTileThatGetsTooManyArrivals) {
  plan_.add(producer());
  NodeSpec spec = consumer();
  spec.operands[0].target = TargetMap::constant(1);
  plan_.add(spec);
  EXPECT_EQ(check(),
            "node 1 `Z = YV` waits for 1 arrival on tile (0, 0) of `Y`, but its producers make 2 "
            "(node 0 `Y = XW`) (and so for 3 more tiles)\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kTooManyArrivals});
}

TEST_F(ContractWaits, TakesEveryFormOfARightTarget) {
  for (const TargetMap& target :
       {TargetMap::constant(2), TargetMap::table({2, 2, 2, 2}),
        TargetMap::plain({shape_, {2, 2}}, {shape_, {2, 4}}),
        TargetMap::functor([](const Coord&, const LaunchArgs& args) { return args.v[1]; })}) {
    plan_ = Plan();
    y_ = plan_.tensor({.name = "Y", .shape = shape_, .tiles = {2, 4}});
    z_ = plan_.tensor({.name = "Z", .shape = shape_});
    plan_.add(producer());
    NodeSpec spec = consumer();
    spec.operands[0].target = target;
    spec.args.v[1] = 2;
    plan_.add(spec);
    EXPECT_EQ(check(), "");
  }
}

TEST_F(ContractWaits, LaunchArgumentsReachTargetsAndMaps) {
  plan_.add(producer());
  NodeSpec spec = consumer();
  spec.operands[0].map =
      TileMap::functor({4, 1}, {shape_, {2, 4}}, [](const Coord& k, const LaunchArgs& args) {
        return TileSpan{{k[0] + args.v[0], 0}, {1, 1}};
      });
  spec.operands[0].target =
      TargetMap::functor([](const Coord&, const LaunchArgs& args) { return args.v[1]; });
  spec.args.v[1] = 2;
  plan_.add(spec);
  EXPECT_EQ(check(), "");
  plan_.nodes()[1].args.v[1] = 4;
  EXPECT_EQ(check(),
            "node 1 `Z = YV` waits for 4 arrivals on tile (0, 0) of `Y`, but its producers make 2 "
            "(node 0 `Y = XW`) (and so for 3 more tiles)\n");
  plan_.nodes()[1].args.v[1] = 2;
  plan_.nodes()[1].args.v[0] = 1;
  EXPECT_EQ(check(),
            "node 1 `Z = YV` maps kernel tile 3 of `Y` to tile 4, but the tensor has 4 tiles\n"
            "node 1 `Z = YV` reads [0:2, 0:2] of `Y`, which node 0 `Y = XW` writes, without "
            "waiting on tile (0, 0) of `Y` (and so for 7 more parts)\n");
  EXPECT_EQ(kinds_, (Kinds{FaultKind::kIndexOverflow, FaultKind::kUncoveredRead}));
}

TEST_F(ContractWaits, AddsUpTheArrivalsOfSeveralProducers) {
  const auto half = [&](const std::string& name, std::int64_t first) {
    NodeSpec spec = producer();
    spec.name = name;
    spec.num_works = 4;
    spec.operands[0].tiles_of_work = [first](std::int64_t w) {
      return std::vector<std::int64_t>{2 * w + first};
    };
    return spec;
  };
  plan_.add(half("left", 0));
  plan_.add(half("right", 1));
  plan_.add(consumer());
  EXPECT_EQ(check(), "");
  EXPECT_EQ(edges_.size(), 2U);
  plan_.nodes()[2].operands[0].target = TargetMap::constant(5);
  EXPECT_EQ(check(),
            "node 2 `Z = YV` waits for 5 arrivals on tile (0, 0) of `Y`, but its producers make 2 "
            "(1 by node 0 `left`, 1 by node 1 `right`) (and so for 3 more tiles)\n");
}

TEST_F(ContractWaits, NamesTheTileThatNobodySignals) {
  NodeSpec spec = producer();
  spec.num_works = 6;  // rows 6 and 7 are not made
  plan_.add(spec);
  plan_.add(consumer());
  EXPECT_EQ(check(),
            "node 1 `Z = YV` waits on tile (3, 0) of `Y`, on which no node arrives\n"
            "node 1 `Z = YV` reads [6:8, 0:4] of `Y`, which no node before it writes\n");
  EXPECT_EQ(kinds_, (Kinds{FaultKind::kUnsatisfiedWait, FaultKind::kUncoveredRead}));
  EXPECT_EQ(faults_[0].tile, 3);
  plan_.nodes()[1].operands[0].target = TargetMap::constant(2);
  check();
  EXPECT_EQ(faults_[0].sentence,
            "node 1 `Z = YV` waits for 2 arrivals on tile (3, 0) of `Y`, on which no node arrives");
}

TEST_F(ContractWaits, RefusesATargetThatIsNegative) {
  plan_.add(producer());
  NodeSpec spec = consumer();
  spec.operands[0].target = TargetMap::table({2, 2, -1, 2});
  plan_.add(spec);
  EXPECT_EQ(check(),
            "node 1 `Z = YV` waits for -1 arrivals on tile (2, 0) of `Y`, but its producers make 2 "
            "(node 0 `Y = XW`)\n");
}

TEST_F(ContractWaits, RefusesATargetBeyond32Bits) {
  plan_.add(producer());
  NodeSpec spec = consumer();
  spec.operands[0].target = TargetMap::constant(std::int64_t{1} << 31);
  plan_.add(spec);
  EXPECT_EQ(check(),
            "node 1 `Z = YV` waits for 2147483648 arrivals on tile (0, 0) of `Y`, more than "
            "2^31 - 1\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kIndexOverflow});
  plan_.nodes()[1].operands[0].target = TargetMap::constant((std::int64_t{1} << 31) - 1);
  check();
  EXPECT_EQ(kinds_, Kinds{FaultKind::kTooFewArrivals});
}

TEST_F(ContractWaits, RefusesATargetTableThatIsTooShort) {
  plan_.add(producer());
  NodeSpec spec = consumer();
  spec.operands[0].target = TargetMap::table({2, 2, 2});
  plan_.add(spec);
  EXPECT_EQ(check(),
            "node 1 `Z = YV` has no target for tile (3, 0) of `Y`: target table: one entry per "
            "data tile, got 3\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kTilingsDisagree});
}

TEST_F(ContractWaits, NamesBothNodesOfABackwardWait) {
  plan_.add(consumer());
  plan_.add(producer());
  EXPECT_EQ(check(),
            "node 0 `Z = YV` at position 0 waits on tile (0, 0) of `Y` for node 1 `Y = XW` at "
            "position 1 (and so for 3 more tiles)\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kBackwardWait});
  EXPECT_EQ(faults_[0].node, 0);
}

TEST_F(ContractWaits, ReportsAnUnsatisfiedWaitAtOnceToAnEagerStream) {
  ContractChecker checker(plan_.tensors());
  EXPECT_EQ(sentences(checker.add(0, consumer())),
            "node 0 `Z = YV` waits on tile (0, 0) of `Y`, on which no node arrives (and so for 3 "
            "more tiles)\n"
            "node 0 `Z = YV` reads [0:2, 0:4] of `Y`, which no node before it writes (and so for "
            "3 more kernel tiles)\n");
  NodeSpec late = producer();
  late.position = 1;
  EXPECT_TRUE(has_kind(checker.add(1, late), FaultKind::kBackwardWait));
  EXPECT_TRUE(checker.finish().empty());
}

TEST_F(ContractWaits, NamesALaterProducerOfATileThatAnEarlierOneCompleted) {
  NodeSpec early = producer();
  early.num_works = 7;
  NodeSpec late = producer();
  late.name = "last corner";
  late.num_works = 1;
  late.operands[0].tiles_of_work = [](std::int64_t) { return std::vector<std::int64_t>{7}; };
  plan_.add(early);
  plan_.add(consumer());
  plan_.add(late);
  EXPECT_EQ(check(),
            "node 1 `Z = YV` at position 1 waits on tile (3, 0) of `Y` for node 2 `last corner` at "
            "position 2\n");
  std::swap(plan_.nodes()[1], plan_.nodes()[2]);
  std::swap(plan_.nodes()[1].position, plan_.nodes()[2].position);
  EXPECT_EQ(check(), "");
}

TEST_F(ContractWaits, NamesANodeThatWaitsForItself) {
  NodeSpec spec = producer();
  spec.operands.push_back(read(y_, grid(shape_, {2, 4}), 1));
  spec.operands.back().tiles_of_work = [](std::int64_t w) {
    return std::vector<std::int64_t>{w / 2};
  };
  plan_.add(spec);
  EXPECT_EQ(check(),
            "node 0 `Y = XW` at position 0 waits on tile (0, 0) of `Y` for itself (and so for 3 "
            "more tiles)\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kBackwardWait});
}

TEST_F(ContractWaits, NamesAWaitForTheSamePositionOfAnotherRankEitherWay) {
  NodeSpec make = producer();
  make.position = 3;
  make.rank = 1;
  NodeSpec use = consumer();
  use.position = 3;
  plan_.add(use);
  plan_.add(make);
  EXPECT_EQ(check(),
            "node 0 `Z = YV` at position 3 waits on tile (0, 0) of `Y` for node 1 `Y = XW` at "
            "position 3 of rank 1 (and so for 3 more tiles)\n");

  Plan swapped = plan_;
  std::swap(swapped.nodes()[0], swapped.nodes()[1]);
  swapped.nodes()[0].rank = 0;
  swapped.nodes()[1].rank = 1;
  plan_ = swapped;
  EXPECT_EQ(check(),
            "node 1 `Z = YV` at position 3 of rank 1 waits on tile (0, 0) of `Y` for node 0 "
            "`Y = XW` at position 3 (and so for 3 more tiles)\n");

  plan_.nodes()[1].position = 4;
  EXPECT_EQ(check(), "");
}

TEST_F(ContractWaits, WaitsThroughAViewForAllTilesItMeets) {
  plan_.add(producer());
  NodeSpec spec = consumer();
  spec.operands[0].view = grid(shape_, {3, 2});
  plan_.add(spec);
  EXPECT_EQ(check(), "");
  plan_.nodes()[1].operands[0].target = TargetMap::constant(2);
  EXPECT_EQ(check(), "");
  plan_.nodes()[1].operands[0].target = TargetMap::constant(3);
  check();
  EXPECT_EQ(kinds_, Kinds{FaultKind::kTooFewArrivals});
}

TEST_F(ContractWaits, AWaitThroughACoarseTileIsADependencyOnAllItsProducers) {
  const TensorId b = plan_.tensor({.name = "B", .shape = {4, 4}, .tiles = {4, 4}});
  const TileSet rows = grid({4, 4}, {1, 4});
  NodeSpec upper = node("upper", 2, {write(b, rows, 0)});
  NodeSpec lower = upper;
  lower.name = "lower";
  lower.operands[0].tiles_of_work = [](std::int64_t w) { return std::vector<std::int64_t>{w + 2}; };
  NodeSpec use = node("use", 1, {read(b, rows, 0), write(z_)});  // reads row 0, waits for all four
  plan_.add(upper);
  plan_.add(lower);
  plan_.add(use);
  EXPECT_EQ(check(), "");
  ASSERT_EQ(edges_.size(), 2U);
  EXPECT_EQ(edges_[1].from, 1);
  EXPECT_EQ(edges_[1].via, Via::kTiles);
}

TEST_F(ContractWaits, LastArriversArriveOncePerKernelTile) {
  NodeSpec spec = node("split", 8, {write(y_, grid(shape_, {2, 4}), 0)});
  spec.operands[0].tiles_of_work = [](std::int64_t w) { return std::vector<std::int64_t>{w / 2}; };
  spec.operands[0].reduction = Reduction::kLastArriver;
  spec.counter.arrivals = {2, 2, 2, 2};
  plan_.add(spec);
  NodeSpec use = consumer();
  use.operands[0].target = TargetMap::constant(1);
  plan_.add(use);
  EXPECT_EQ(check(), "");

  plan_.nodes()[0].counter.arrivals = {2, 2, 3, 2};
  EXPECT_EQ(check(),
            "node 0 `split` counts 3 arrivals for kernel tile 2 of `Y`, but 2 works touch it\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kTooFewArrivals});
  plan_.nodes()[0].counter.arrivals = {1, 2, 1, 2};
  EXPECT_EQ(check(),
            "node 0 `split` counts 1 arrival for kernel tile 0 of `Y`, but 2 works touch it (and "
            "so for 1 more kernel tile)\n");
  EXPECT_EQ(kinds_, Kinds{FaultKind::kTooManyArrivals});
  plan_.nodes()[0].counter.arrivals = {2, 2};
  EXPECT_EQ(check(),
            "node 0 `split` has 2 counters for 4 kernel tiles of `Y` whose last arriver signals\n");
  plan_.nodes()[0].counter.arrivals = {2, 2, 2, 2, 40};  // and a queue of its own
  EXPECT_EQ(check(), "");
}

TEST_F(ContractWaits, AStateTileThatTheRunLeavesAloneNeedsNoArrival) {
  const Shape shape = {8, 4};
  const TensorId cache =
      plan_.tensor({.name = "cache", .shape = shape, .kind = TensorKind::kState, .tiles = {2, 4}});
  NodeSpec append = node("append", 1, {write(cache, grid(shape, {1, 4}), 0)});
  append.operands[0].tiles_of_work = [](std::int64_t) { return std::vector<std::int64_t>{5}; };
  NodeSpec attend = node("attend", 1, {read(cache, grid(shape, {8, 4}), 0), write(z_)});
  plan_.add(append);
  plan_.add(attend);
  EXPECT_EQ(check(), "");
  ASSERT_EQ(edges_.size(), 1U);
  EXPECT_EQ(edges_[0].via, Via::kTiles);
  plan_.nodes()[1].operands[0].target = TargetMap::table({0, 0, 1, 0});
  EXPECT_EQ(check(), "");
  plan_.nodes()[1].operands[0].target = TargetMap::table({1, 0, 1, 0});
  EXPECT_EQ(check(),
            "node 1 `attend` waits for 1 arrival on tile (0, 0) of `cache`, on which no node "
            "arrives\n");
}

TEST_F(ContractWaits, AConstantIsNeverSignalled) {
  const TensorId w =
      plan_.tensor({.name = "W", .shape = {4}, .kind = TensorKind::kConstant, .tiles = {2}});
  plan_.add(node("use", 1, {read(w, {}, 0), write(z_)}));
  EXPECT_EQ(check(),
            "node 0 `use` waits on tile (0) of `W`, on which no node arrives (and so for 1 more "
            "tile)\n");
  plan_.nodes()[0].operands[0].sync_slot = -1;
  EXPECT_EQ(check(), "");
}

TEST_F(ContractWaits, APlainOperatorBetweenTiledNodesIsOrderedByCompletion) {
  NodeSpec foreign = node("memcpy", 1, {write(y_)});
  foreign.integrated = false;
  plan_.add(foreign);
  plan_.add(consumer());
  EXPECT_EQ(check(), "");
  ASSERT_EQ(edges_.size(), 1U);
  EXPECT_EQ(edges_[0].via, Via::kCompletion);
}

}  // namespace
}  // namespace tileweave

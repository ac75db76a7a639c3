#include "tileweave/plan/node.h"

#include <gtest/gtest.h>

#include "tests/plan/small_plans.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

using testing::grid;
using testing::node;
using testing::read;
using testing::write;

class NodeTest : public ::testing::Test {
 protected:
  std::string refusal(NodeSpec spec) {
    try {
      plan_.add(std::move(spec));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  Plan plan_;
  TensorId x_ = plan_.tensor({.name = "X", .shape = {6, 4}, .kind = TensorKind::kConstant});
  TensorId y_ = plan_.tensor({.name = "Y", .shape = {6, 4}, .tiles = {2, 4}});
};

using NodeBlocks = NodeTest;
using NodeKernelTiles = NodeTest;
using NodeMaps = NodeTest;
using PlanAdd = NodeTest;

TEST_F(NodeBlocks, AreOnePerWorkUnlessSaid) {
  NodeSpec spec = node("A", 6, {});
  EXPECT_EQ(blocks_of(spec), 6);
  spec.num_blocks = 2;
  EXPECT_EQ(blocks_of(spec), 2);
}

TEST_F(NodeKernelTiles, AreTheWholeTensorUnlessSaid) {
  const Tensor& tensor = plan_.tensors()[y_];
  EXPECT_EQ(kernel_tiles_of(read(y_), tensor).count(), 1);
  EXPECT_EQ(kernel_tiles_of(read(y_), tensor).box(0), (Box{{0, 0}, {6, 4}}));
  EXPECT_EQ(kernel_tiles_of_work(read(y_), tensor, 5), std::vector<std::int64_t>{0});
  const OperandSpec rows = read(y_, grid({6, 4}, {1, 4}));
  EXPECT_EQ(kernel_tiles_of_work(rows, tensor, 5), std::vector<std::int64_t>{5});
  OperandSpec pairs = rows;
  pairs.tiles_of_work = [](std::int64_t w) { return std::vector<std::int64_t>{w, w + 1}; };
  EXPECT_EQ(kernel_tiles_of_work(pairs, tensor, 3), (std::vector<std::int64_t>{3, 4}));
}

TEST_F(NodeMaps, AreDerivedUnlessGiven) {
  const Tensor& tensor = plan_.tensors()[y_];
  OperandSpec operand = read(y_, grid({6, 4}, {3, 4}), 0);
  EXPECT_EQ(map_of(operand, tensor, {}).tiles_of({0}), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(map_of(operand, tensor, {}).tiles_of({1}), (std::vector<std::int64_t>{1, 2}));
  operand.map = TileMap::table({2}, {0, 1, 2}, {2, 0});
  EXPECT_EQ(map_of(operand, tensor, {}).tiles_of({0}), (std::vector<std::int64_t>{2}));
  EXPECT_THROW(map_of(read(x_), plan_.tensors()[x_], {}), Error);
}

TEST_F(NodeMaps, LeadThroughAViewToTheTilesItMeets) {
  const Tensor& tensor = plan_.tensors()[y_];
  OperandSpec operand = read(y_, grid({6, 4}, {1, 4}), 0);
  operand.view = grid({6, 4}, {3, 2});
  EXPECT_EQ(map_of(operand, tensor, {}).tiles_of({0}), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(map_of(operand, tensor, {}).tiles_of({5}), (std::vector<std::int64_t>{1, 2}));
  operand.map = TileMap::table({6, 1}, {0, 1, 1, 1, 1, 1, 1}, {3});  // view tile (1, 1)
  EXPECT_EQ(map_of(operand, tensor, {}).tiles_of({0}), (std::vector<std::int64_t>{1, 2}));
}

TEST_F(PlanAdd, GivesPositionsPerRankAndRefusesToGoBack) {
  EXPECT_EQ(plan_.add(node("A", 1, {})), 0);
  EXPECT_EQ(plan_.nodes()[0].position, 0);
  NodeSpec other_rank = node("B", 1, {});
  other_rank.rank = 1;
  EXPECT_EQ(plan_.add(other_rank), 1);
  EXPECT_EQ(plan_.nodes()[1].position, 0);
  EXPECT_EQ(plan_.add(node("C", 1, {})), 2);
  EXPECT_EQ(plan_.nodes()[2].position, 1);
  NodeSpec late = node("D", 1, {});
  late.position = 1;
  EXPECT_EQ(refusal(late),
            "node `D`: nodes in order of position and rank, after `C` at position 1 of rank 0, got "
            "position 1 of rank 0");
  late.rank = 1;
  EXPECT_EQ(refusal(late), "accepted");
  late.position = 9;
  EXPECT_EQ(refusal(late), "accepted");
  late.position = 8;
  late.rank = 2;
  EXPECT_EQ(refusal(late),
            "node `D`: nodes in order of position and rank, after `D` at position 9 of rank 1, got "
            "position 8 of rank 2");
}

TEST_F(PlanAdd, RefusesMalformedNodesByName) {
  EXPECT_EQ(refusal(node("", 1, {})), "node: a name that is not empty");
  EXPECT_EQ(refusal(node("A", 0, {})), "node `A`: at least one work, got 0");
  EXPECT_EQ(refusal(node("A", -3, {})), "node `A`: at least one work, got -3");
  EXPECT_EQ(refusal(node("A", 1, {read(2)})), "node `A` operand 0: a tensor id below 2, got 2");
  EXPECT_EQ(refusal(node("A", 1, {read(x_), read(-1)})),
            "node `A` operand 1: a tensor id below 2, got -1");
  NodeSpec spec = node("A", 1, {});
  spec.kernel = "";
  EXPECT_EQ(refusal(spec), "node `A`: the name of a kernel");
  spec = node("A", 1, {});
  spec.make_args = nullptr;
  EXPECT_EQ(refusal(spec),
            "node `A`: a function that makes the arguments of kernel `test` (make_args)");
  spec = node("A", 1, {});
  spec.rank = -1;
  EXPECT_EQ(refusal(spec), "node `A`: rank 0 or more, got -1");
  spec = node("A", 1, {});
  spec.position = -2;
  EXPECT_EQ(refusal(spec), "node `A`: position 0 or more, or -1 for the next one, got -2");
  spec = node("A", 1, {});
  spec.resources.threads = 0;
  EXPECT_EQ(refusal(spec),
            "node `A`: at least one thread and no negative resources, got 0 threads, 0 registers, "
            "0 bytes of shared memory");
  EXPECT_TRUE(plan_.nodes().empty());
}

TEST_F(PlanAdd, RefusesSyncSlotsThatAreNotOneToOne) {
  EXPECT_EQ(refusal(node("A", 1, {read(x_, {}, 0), write(y_, {}, 0)})),
            "node `A`: one operand per sync slot, got two on slot 0");
  EXPECT_EQ(refusal(node("A", 1, {read(x_, {}, 0), write(y_, {}, 2)})),
            "node `A`: sync slots 0 to 1 without a gap, got slot 2");
  EXPECT_EQ(refusal(node("A", 1, {read(x_, {}, -2)})),
            "node `A` operand 0: a sync slot, or -1 for none, got -2");
  EXPECT_EQ(refusal(node("A", 1, {read(x_, {}, 1), read(x_), write(y_, {}, 0)})), "accepted");
}

TEST_F(PlanAdd, RefusesWhatAnAccessCannotHave) {
  OperandSpec operand = write(y_);
  operand.when = ReadTime::kPrologue;
  EXPECT_EQ(refusal(node("A", 1, {operand})),
            "node `A` operand 0: only reads happen in the prologue, got a write");
  operand = write(y_);
  operand.target = TargetMap::constant(1);
  EXPECT_EQ(refusal(node("A", 1, {operand})),
            "node `A` operand 0: only reads have a target to wait for, got a write");
  operand = read(x_);
  operand.reduction = Reduction::kLastArriver;
  EXPECT_EQ(refusal(node("A", 1, {operand})),
            "node `A` operand 0: only writes are reduced, got a read");
  NodeSpec foreign = node("A", 1, {write(y_, {}, 0)});
  foreign.integrated = false;
  EXPECT_EQ(refusal(foreign),
            "node `A` operand 0: no sync slot in a node that is not integrated, got 0");
}

TEST_F(PlanAdd, GivesUnintegratedNodesFullEdges) {
  NodeSpec foreign = node("A", 1, {write(y_)});
  foreign.integrated = false;
  foreign.kernel = "";
  foreign.make_args = nullptr;
  EXPECT_EQ(plan_.edge_of(plan_.add(foreign)).kind, EdgeKind::kFull);
  NodeSpec own = node("B", 1, {});
  EXPECT_EQ(plan_.edge_of(plan_.add(own)).kind, EdgeKind::kTile);
  own.edge = EdgePolicy{.kind = EdgeKind::kProgrammatic};
  EXPECT_EQ(plan_.edge_of(plan_.add(own)).kind, EdgeKind::kProgrammatic);
}

TEST(Plan, RetilesATensorOnlyBeforeANodeUsesIt) {
  Plan plan;
  const TensorId y = plan.tensor({.name = "Y", .shape = {4, 8}, .tiles = {1, 8}});
  const TensorId z = plan.tensor({.name = "Z", .shape = {4, 8}});
  plan.tile(y, {2, 8});
  EXPECT_EQ(plan.tensors()[y].tiles.count(), 2);
  plan.add(testing::node("make", 4, {testing::write(y, testing::grid({4, 8}, {1, 8}), 0)}));
  plan.tile(z, {4, 4});
  try {
    plan.tile(y, {4, 8});
    FAIL() << "retiled under its node";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "tile `Y`: a tensor that no node uses yet, got one of `make`");
  }
  EXPECT_EQ(plan.tensors()[y].tiles.count(), 2);
}

}  // namespace
}  // namespace tileweave

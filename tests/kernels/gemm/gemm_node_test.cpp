#include "tileweave/kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/gemm_args.h"
#include "tileweave/plan/plan.h"

namespace tileweave {
namespace {

/// Tensors a (m, k), b (k, n), c (m, n), tiled as given.
struct Matrices {
  Plan plan;
  TensorId a, b, c;

  Matrices(std::int64_t m, std::int64_t n, std::int64_t k, const Coord& a_tiles = {},
           const Coord& c_tiles = {}, DType type = DType::kF32) {
    a = plan.tensor({.name = "a", .shape = {m, k}, .dtype = type, .tiles = a_tiles});
    b = plan.tensor({.name = "b", .shape = {k, n}, .dtype = type, .kind = TensorKind::kConstant});
    c = plan.tensor({.name = "c", .shape = {m, n}, .tiles = c_tiles});
  }
  NodeSpec node(const GemmOptions& options) { return gemm(plan.tensors(), options, a, b, c); }
};

std::string sentence(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(GemmNode, DeclaresRowTilesOfAAndTilesOfC) {
  Matrices x(100, 70, 50, {64, 50}, {32, 70});
  const NodeSpec node = x.node({.tile_m = 32, .tile_n = 16});
  EXPECT_EQ(node.num_works, 4 * 5);
  EXPECT_EQ(node.kernel, "gemm.f32.f32.f32");
  const OperandSpec& a = node.operands[GemmOperands::kA];
  const OperandSpec& c = node.operands[GemmOperands::kC];
  EXPECT_EQ(a.sync_slot, 0);
  EXPECT_EQ(node.operands[GemmOperands::kB].when, ReadTime::kPrologue);
  EXPECT_EQ(c.sync_slot, 2);
  EXPECT_EQ(a.kernel_tiles.tiling().tile, (Coord{32, 50}));
  EXPECT_EQ(c.kernel_tiles.tiling().tile, (Coord{32, 16}));
  EXPECT_EQ(a.tiles_of_work(7), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(c.tiles_of_work(7), (std::vector<std::int64_t>{7}));
  EXPECT_NO_THROW(x.plan.add(node));
}

TEST(GemmNode, TilingATensorChangesNothingInTheNode) {
  Matrices tiled(100, 70, 50, {64, 50}, {32, 70});
  Matrices untiled(100, 70, 50);
  for (std::size_t i = 0; i < 3; ++i) {
    const OperandSpec with = tiled.node({}).operands[i];
    const OperandSpec without = untiled.node({}).operands[i];
    EXPECT_EQ(with.sync_slot, without.sync_slot);
    EXPECT_EQ(with.kernel_tiles, without.kernel_tiles);
  }
}

TEST(GemmNode, WaitsForSlicesOfKThatItsPartNeeds) {
  Matrices x(64, 64, 100, {32, 20}, {});
  const NodeSpec node = x.node({.tile_m = 32,
                                .tile_n = 64,
                                .tile_k = 10,
                                .split = GemmSplit::kSplitK,
                                .splits = 2,
                                .wait_k = 20});
  const OperandSpec& a = node.operands[GemmOperands::kA];
  EXPECT_EQ(a.kernel_tiles.tiling().tile, (Coord{32, 20}));
  EXPECT_EQ(a.tiles_of_work(0), (std::vector<std::int64_t>{0, 1, 2}));  // k [0, 50)
  EXPECT_EQ(a.tiles_of_work(3), (std::vector<std::int64_t>{7, 8, 9}));  // row 1, k [50, 100)
}

TEST(GemmNode, CoarseRowsShareOneKernelTileOfA) {
  Matrices x(100, 64, 50, {64, 50}, {});
  const NodeSpec node = x.node({.tile_m = 16, .tile_n = 64, .coarse_m = 4});
  const OperandSpec& a = node.operands[GemmOperands::kA];
  EXPECT_EQ(a.kernel_tiles.tiling().tile, (Coord{64, 50}));
  EXPECT_EQ(a.tiles_of_work(3), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(a.tiles_of_work(4), (std::vector<std::int64_t>{1}));
}

TEST(GemmNode, StreamKDeclaresAllTilesOfAShareAndOneArrivalPerContribution) {
  Matrices x(64, 64, 100, {}, {32, 32});
  const NodeSpec node = x.node(
      {.tile_m = 32, .tile_n = 32, .tile_k = 10, .split = GemmSplit::kStreamK, .num_blocks = 3});
  // 40 steps over 3 blocks: [0, 13) [13, 26) [26, 40), tiles end at 10, 20, 30, 40.
  const OperandSpec& c = node.operands[GemmOperands::kC];
  EXPECT_EQ(c.reduction, Reduction::kLastArriver);
  EXPECT_EQ(c.tiles_of_work(0), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(c.tiles_of_work(1), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(c.tiles_of_work(2), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(node.counter.arrivals, (std::vector<std::uint32_t>{1, 2, 2, 1}));
  EXPECT_EQ(node.scratch_bytes, 3U * 2U * 32U * 32U * 4U);
}

TEST(GemmNode, AProducedBIsWaitedForInItsOwnSlot) {
  Plan plan;
  const TensorId a = plan.tensor({.name = "a", .shape = {8, 16}, .tiles = {4, 16}});
  const TensorId b = plan.tensor({.name = "b", .shape = {32, 16}, .tiles = {8, 16}});
  const TensorId c = plan.tensor({.name = "c", .shape = {8, 32}});
  const NodeSpec node =
      gemm(plan.tensors(), {.tile_m = 4, .tile_n = 8, .b_layout = BLayout::kNxK}, a, b, c);
  const OperandSpec& operand = node.operands[GemmOperands::kB];
  EXPECT_EQ(operand.sync_slot, 1);
  EXPECT_EQ(operand.when, ReadTime::kAfterWait);
  EXPECT_EQ(operand.kernel_tiles.tiling().tile, (Coord{8, 16}));
  EXPECT_EQ(operand.tiles_of_work(6), (std::vector<std::int64_t>{2}));
}

TEST(GemmNode, ChargesWorksByTheirShareOfAWholeTile) {
  Matrices x(48, 64, 100);
  const NodeSpec node = x.node({.tile_m = 32,
                                .tile_n = 64,
                                .tile_k = 10,
                                .split = GemmSplit::kSplitK,
                                .splits = 2,
                                .cost_of_tile = 8});
  EXPECT_DOUBLE_EQ(node.cost.of_work(0), 4);
  EXPECT_DOUBLE_EQ(node.cost.of_work(3), 2);  // half the rows, half of K
}

TEST(GemmNode, RefusesWhatDoesNotFitInOneSentence) {
  Matrices x(100, 70, 50);
  EXPECT_EQ(sentence([&] { x.node({.name = "up", .tile_m = 0}); }),
            "make gemm node `up`: tile_m must be between 1 and 1048576, got 0");
  EXPECT_EQ(sentence([&] { x.node({.b_layout = BLayout::kNxK}); }),
            "make gemm node `gemm`: `b` must be (N, 50) for `a` (100, 50), got (50, 70)");
  EXPECT_EQ(sentence([&] { x.node({.tile_k = 32, .wait_k = 40}); }),
            "make gemm node `gemm`: wait_k must be 0 or a multiple of tile_k 32, got 40");
  EXPECT_EQ(
      sentence([&] { x.node({.tile_k = 25, .split = GemmSplit::kSplitK, .splits = 3}); }),
      "make gemm node `gemm`: splits must be between 1 and the 2 k steps of K = 50 with tile_k "
      "25, got 3");
  EXPECT_EQ(sentence([&] { x.node({.splits = 2}); }),
            "make gemm node `gemm`: splits belongs to kSplitK and must be 1 otherwise, got 2");
  EXPECT_EQ(sentence([&] { x.node({.split = GemmSplit::kStreamK}); }),
            "make gemm node `gemm`: Stream-K needs num_blocks between 1 and its 8 (tile, k step) "
            "pairs, got 0");
  EXPECT_EQ(sentence([&] { gemm(x.plan.tensors(), {}, x.a, x.b, x.a); }),
            "make gemm node `gemm`: `a` must be (100, 70), got (100, 50)");
  const TensorId wide = x.plan.tensor({.name = "w", .shape = {50, 70}, .dtype = DType::kBF16});
  const TensorId half = x.plan.tensor({.name = "h", .shape = {100, 70}, .dtype = DType::kBF16});
  EXPECT_EQ(sentence([&] { gemm(x.plan.tensors(), {}, x.a, wide, half); }),
            "make gemm node `gemm`: `a` x `w` -> `h` must be f32 x f32 or bf16 x bf16 -> f32 or "
            "bf16, or f32 x bf16 or f16 -> f32, got f32 x bf16 -> bf16");
  const TensorId counts = x.plan.tensor({.name = "n", .shape = {100, 70}, .dtype = DType::kI32});
  EXPECT_EQ(sentence([&] { gemm(x.plan.tensors(), {}, x.a, x.b, counts); }),
            "make gemm node `gemm`: `n` must be f32, bf16 or f16, got i32");
  const TensorId row = x.plan.tensor({.name = "r", .shape = {50}});
  EXPECT_EQ(sentence([&] { gemm(x.plan.tensors(), {}, row, x.b, x.c); }),
            "make gemm node `gemm`: `r` must be a matrix, got shape (50)");
}

TEST(GemmNode, RefusesASquareResultThatIsItsOwnOperand) {
  Plan plan;
  const TensorId a = plan.tensor({.name = "a", .shape = {16, 16}});
  const TensorId b = plan.tensor({.name = "b", .shape = {16, 16}});
  EXPECT_EQ(
      sentence([&] { gemm(plan.tensors(), {}, a, b, a); }),
      "make gemm node `gemm`: the result must be another tensor than the operands, got `a` as "
      "both");
}

}  // namespace
}  // namespace tileweave

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

/// The matrices of one projection with weights (N, K) and everything an epilogue may ask for.
struct Projection {
  Plan plan;
  TensorId a, b, c, bias, residual;

  Projection() {
    a = plan.tensor({.name = "a", .shape = {10, 50}, .tiles = {4, 50}});
    b = plan.tensor(
        {.name = "b", .shape = {70, 50}, .dtype = DType::kBF16, .kind = TensorKind::kConstant});
    residual = plan.tensor({.name = "residual", .shape = {10, 70}, .tiles = {4, 16}});
    c = plan.tensor({.name = "c", .shape = {10, 70}, .shares_buffer_with = residual});
    bias = plan.tensor({.name = "bias", .shape = {70}, .kind = TensorKind::kConstant});
  }
  NodeSpec node(const GemmEpilogue& epilogue, GemmOptions options = {}) {
    options.b_layout = BLayout::kNxK;
    options.epilogue = epilogue;
    return gemm(plan.tensors(), options, a, b, c);
  }
};

TEST(GemmNode, NamesTheKernelByTypesAndByTheSlotThatAResidualTakes) {
  Projection x;
  EXPECT_EQ(x.node({}).kernel, "gemm.f32.bf16.f32");
  EXPECT_EQ(x.node({.activation = GemmActivation::kSilu}).kernel, "gemm.f32.bf16.f32.epilogue");
  EXPECT_EQ(x.node({.bias = x.bias}).kernel, "gemm.f32.bf16.f32.epilogue");
  EXPECT_EQ(x.node({.bias = x.bias, .residual = x.residual}).kernel, "gemm.f32.bf16.f32.residual");
}

TEST(GemmNode, DeclaresBiasAndResidualByTheTilesOfC) {
  Projection x;
  const NodeSpec node =
      x.node({.bias = x.bias, .residual = x.residual}, {.tile_m = 4, .tile_n = 32});
  ASSERT_EQ(node.operands.size(), 5U);
  const OperandSpec& bias = node.operands[3];
  EXPECT_EQ(bias.tensor, x.bias);
  EXPECT_EQ(bias.when, ReadTime::kPrologue);
  EXPECT_EQ(bias.sync_slot, -1);
  EXPECT_EQ(bias.kernel_tiles.box(2), (Box{{64}, {6}}));
  EXPECT_EQ(bias.tiles_of_work(5), (std::vector<std::int64_t>{2}));
  const OperandSpec& residual = node.operands[4];
  EXPECT_EQ(residual.tensor, x.residual);
  EXPECT_EQ(residual.when, ReadTime::kAfterWait);
  EXPECT_EQ(residual.sync_slot, GemmOperands::kSlotResidual);
  EXPECT_EQ(residual.kernel_tiles.tiling().tile, (Coord{4, 32}));
  EXPECT_EQ(residual.tiles_of_work(5), (std::vector<std::int64_t>{5}));
  EXPECT_NO_THROW(x.plan.add(node));
}

TEST(GemmNode, AGatedProductReadsTheGatesColumnsAndTheFactors) {
  Projection x;
  x.c = x.plan.tensor({.name = "half", .shape = {10, 35}});
  const NodeSpec node = x.node({.bias = x.bias, .gated = true}, {.tile_m = 5, .tile_n = 16});
  EXPECT_EQ(node.num_works, 2 * 3);
  const OperandSpec& b = node.operands[GemmOperands::kB];
  EXPECT_EQ(b.tiles_of_work(4), (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(b.kernel_tiles.box(1), (Box{{16, 0}, {16, 50}}));
  EXPECT_EQ(b.kernel_tiles.box(4), (Box{{35 + 16, 0}, {16, 50}}));
  EXPECT_EQ(node.operands[3].kernel_tiles.box(5), (Box{{35 + 32}, {3}}));
  const NodeSpec split = x.node(
      {.gated = true}, {.tile_m = 5, .tile_n = 16, .split = GemmSplit::kSplitK, .splits = 2});
  EXPECT_EQ(split.scratch_bytes, 12U * 2U * 5U * 16U * 4U);
}

TEST(GemmNode, RefusesEpiloguesThatDoNotFitInOneSentence) {
  Projection x;
  const auto tensor = [&](const TensorSpec& spec) { return x.plan.tensor(spec); };
  const auto constant = TensorKind::kConstant;
  EXPECT_EQ(sentence([&] { x.node({.bias = 99}); }), "tensor table: a tensor id below 5, got 99");
  const TensorId short_bias = tensor({.name = "s", .shape = {69}, .kind = constant});
  EXPECT_EQ(sentence([&] { x.node({.bias = short_bias}); }),
            "make gemm node `gemm`: the bias `s` must be (70), got (69)");
  const TensorId counts =
      tensor({.name = "n", .shape = {70}, .dtype = DType::kI32, .kind = constant});
  EXPECT_EQ(sentence([&] { x.node({.bias = counts}); }),
            "make gemm node `gemm`: the bias `n` must be f32, bf16 or f16, got i32");
  const TensorId produced = tensor({.name = "p", .shape = {70}});
  EXPECT_EQ(sentence([&] { x.node({.bias = produced}); }),
            "make gemm node `gemm`: the bias `p` must be constant, got value");
  EXPECT_EQ(sentence([&] { x.node({.residual = x.a}); }),
            "make gemm node `gemm`: the residual `a` must be (10, 70), got (10, 50)");
  const TensorId half = tensor({.name = "h", .shape = {10, 70}, .dtype = DType::kBF16});
  EXPECT_EQ(sentence([&] { x.node({.residual = half}); }),
            "make gemm node `gemm`: the residual `h` must be f32, got bf16");
  EXPECT_EQ(sentence([&] { x.node({.residual = x.c}); }),
            "make gemm node `gemm`: the result must be another value than the residual (it may "
            "share its buffer), got `c` as both");
  EXPECT_EQ(sentence([&] {
              x.node({.residual = x.residual}, {.split = GemmSplit::kSplitK, .splits = 2});
            }),
            "make gemm node `gemm`: `c` may share the buffer of the residual `residual` only "
            "where K is not split, got a split of K");
  EXPECT_EQ(sentence([&] { x.node({.gated = true}); }),
            "make gemm node `gemm`: `c` must be (10, 35), got (10, 70)");
  x.b = tensor({.name = "odd", .shape = {71, 50}, .kind = constant});
  EXPECT_EQ(sentence([&] { x.node({.gated = true}); }),
            "make gemm node `gemm`: `odd` must hold the gate's columns and as many others, got 71");
  x.b = tensor({.name = "q", .shape = {140, 50}});
  EXPECT_EQ(sentence([&] { x.node({.gated = true}); }),
            "make gemm node `gemm`: a gated GEMM needs a constant `q`, got value");
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

// SiLU-mul on a GPU: against the reference, and in a feed-forward block.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/rounded_bound.h"
#include "tileweave/kernels/activation/silu_mul.h"
#include "tileweave/kernels/activation/silu_mul_ref.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

/// Values of out as fp32, whatever its type.
template <class Y>
std::vector<float> silu_mul_of(Device& device, const std::vector<float>& gate_up, std::int64_t cols,
                               const SiluMulOptions& options = {}) {
  const std::int64_t rows = static_cast<std::int64_t>(gate_up.size()) / (2 * cols);
  Plan plan;
  const TensorId x =
      plan.tensor({.name = "gate_up", .shape = {rows, 2 * cols}, .kind = TensorKind::kConstant});
  const TensorId y =
      plan.tensor({.name = "out", .shape = {rows, cols}, .dtype = kDTypeOf<Y>, .output = true});
  plan.add(silu_mul(plan.tensors(), options, x, y));
  Program program(device, plan);
  program.write(x, gate_up);
  program.run();
  program.synchronize();
  std::vector<float> out;
  for (const Y value : program.read<Y>(y)) out.push_back(to_float(value));
  return out;
}

/// One rounding more than the reference counts: a reciprocal and a product, not a quotient.
double bound(double exact, double up, DType type) {
  const double fp32 = silu_mul_error_bound(exact, up) + std::ldexp(std::fabs(exact), -24);
  return rounded_bound(exact, fp32, type);
}

template <class Y>
void expect_near_reference(Device& device, const std::vector<float>& gate_up, std::int64_t cols) {
  const std::vector<double> exact = silu_mul_reference(gate_up, cols);
  const std::vector<float> out = silu_mul_of<Y>(device, gate_up, cols);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto n = static_cast<std::size_t>(cols);
    const std::size_t gate = i / n * 2 * n + i % n;
    ASSERT_LE(std::fabs(out[i] - exact[i]), bound(exact[i], gate_up[gate + n], kDTypeOf<Y>))
        << "element " << i << ", gate " << gate_up[gate] << ", up " << gate_up[gate + n] << ", out "
        << out[i] << " " << name_of(kDTypeOf<Y>);
  }
}

std::vector<float> random_gate_up(std::int64_t rows, std::int64_t cols) {
  std::vector<float> gate_up = random_values<float>(rows * 2 * cols, 51);
  for (float& value : gate_up) value *= 12;
  return gate_up;
}

TEST(SiluMulCuda, AgreesWithTheReferenceForEveryShape) {
  const auto device = open_cuda_device();
  add_activation(*device);
  for (const std::int64_t rows : {1, 7, 8, 17}) {
    for (const std::int64_t cols : {1, 7, 8, 131, 2048, 2052, 4104, 8192}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
      const std::vector<float> gate_up = random_gate_up(rows, cols);
      expect_near_reference<float>(*device, gate_up, cols);
      expect_near_reference<BFloat16>(*device, gate_up, cols);
    }
  }
}

TEST(SiluMulCuda, AgreesWithTheReferenceOverTheWholeRangeOfGates) {
  const auto device = open_cuda_device();
  add_activation(*device);
  // One row; gates from -150 to 150 in steps of 1/64, past where exp overflows and vanishes.
  std::vector<float> gates;
  for (int i = -150 * 64; i <= 150 * 64; ++i) gates.push_back(static_cast<float>(i) / 64);
  for (const float gate : {std::numeric_limits<float>::denorm_min(), 1e-30F, -1e-30F, 3e38F, -3e38F,
                           -88.72F, -88.73F}) {
    gates.push_back(gate);
  }
  const auto cols = static_cast<std::int64_t>(gates.size());
  std::vector<float> gate_up = gates;
  gate_up.insert(gate_up.end(), gates.size(), 0.75F);
  expect_near_reference<float>(*device, gate_up, cols);
  expect_near_reference<BFloat16>(*device, gate_up, cols);
}

TEST(SiluMulCuda, NotANumberAndInfinityComeThroughAsInTheFormula) {
  const auto device = open_cuda_device();
  add_activation(*device);
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const auto out = silu_mul_of<BFloat16>(*device, {nan, inf, 1, -inf, 1, 1, nan, 1}, 4);
  EXPECT_TRUE(std::isnan(out[0])) << out[0];
  EXPECT_EQ(out[1], inf);
  EXPECT_TRUE(std::isnan(out[2])) << out[2];
  EXPECT_TRUE(std::isnan(out[3])) << out[3];
}

TEST(SiluMulCuda, BitsOfAnElementDoNotDependOnTilesOrderOrItsNeighbours) {
  const auto device = open_cuda_device();
  add_activation(*device);
  for (const std::int64_t cols : {67, 2048}) {
    SCOPED_TRACE(std::to_string(cols) + " columns");
    std::vector<float> gate_up = random_gate_up(16, cols);
    const auto expected = silu_mul_of<BFloat16>(*device, gate_up, cols);
    for (const std::int64_t tile_m : {1, 4, 16}) {
      for (const std::int64_t tile_n : {16, 31, 68, 512, 3000}) {
        EXPECT_EQ(silu_mul_of<BFloat16>(*device, gate_up, cols,
                                        {.tile_m = tile_m,
                                         .tile_n = tile_n,
                                         .num_blocks = tile_n == 31 ? 3 : 0,
                                         .order = TileOrder::rotation(1)}),
                  expected)
            << "tiles of " << tile_m << " x " << tile_n;
      }
    }
    for (const std::int64_t row : {0, 5, 15}) {
      const std::vector<float> one(gate_up.begin() + row * 2 * cols,
                                   gate_up.begin() + (row + 1) * 2 * cols);
      const auto alone = silu_mul_of<BFloat16>(*device, one, cols);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), expected.begin() + row * cols))
          << "row " << row << " alone";
    }
  }
}

/// X W = gate_up, A = silu_mul in bf16, A D = Z.
struct ChainCase {
  std::string name;
  std::int64_t inner = 0;
  Coord gate_up_tiles = {}, inner_tiles = {};
  SiluMulOptions silu = {};
};

std::vector<ChainCase> chain_cases() {
  return {{"rows", 53, {16, 106}, {16, 53}},
          {"one word", 64, {37, 128}, {37, 64}, {.tile_m = 5, .tile_n = 16}},
          {"rows that divide nothing", 53, {5, 106}, {3, 53}, {.tile_m = 6}},
          {"a grid of columns", 64, {37, 16}, {37, 16}, {.tile_m = 37, .tile_n = 16}},
          {"columns", 53, {37, 10}, {37, 16}, {.tile_m = 37, .tile_n = 12}},
          {"2-D", 64, {9, 31}, {5, 20}, {.tile_m = 4, .tile_n = 8}},
          {"groups that a tile cuts", 64, {9, 31}, {5, 20}, {.tile_m = 4, .tile_n = 12}},
          {"persistent blocks", 53, {8, 53}, {8, 16}, {.tile_n = 16, .num_blocks = 3}}};
}

struct ChainResult {
  std::vector<float> act, z;
};

ChainResult run_chain(Device& device, const ChainCase& c, const RunOptions& options,
                      const EdgePolicy& edge = {.start = StartRule::kWaitAll}) {
  const std::int64_t m = 37, hidden = 40;
  Plan plan({.num_streams = 3, .edge = edge});
  const auto constant = [&](const char* name, const Shape& shape, DType type) {
    return plan.tensor(
        {.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  const TensorId x = constant("X", {m, hidden}, DType::kBF16);
  const TensorId up = constant("up", {2 * c.inner, hidden}, DType::kBF16);
  const TensorId down = constant("down", {hidden, c.inner}, DType::kBF16);
  const TensorId gate_up =
      plan.tensor({.name = "gate_up", .shape = {m, 2 * c.inner}, .tiles = c.gate_up_tiles});
  const TensorId act = plan.tensor({.name = "act",
                                    .shape = {m, c.inner},
                                    .dtype = DType::kBF16,
                                    .tiles = c.inner_tiles,
                                    .output = true});
  const TensorId z = plan.tensor({.name = "Z", .shape = {m, hidden}, .output = true});
  plan.add(gemm(plan.tensors(),
                {.name = "up", .tile_m = 16, .tile_n = 24, .b_layout = BLayout::kNxK}, x, up,
                gate_up));
  plan.add(silu_mul(plan.tensors(), c.silu, gate_up, act));
  plan.add(gemm(plan.tensors(),
                {.name = "down", .tile_m = 12, .tile_n = 20, .b_layout = BLayout::kNxK}, act, down,
                z));
  Program program(device, plan, options);
  program.write(x, random_values<BFloat16>(m * hidden, 1));
  program.write(up, random_values<BFloat16>(2 * c.inner * hidden, 2));
  program.write(down, random_values<BFloat16>(c.inner * hidden, 3));
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  ChainResult result{{}, program.read<float>(z)};
  for (const BFloat16 value : program.read<BFloat16>(act)) result.act.push_back(to_float(value));
  return result;
}

TEST(SiluMulCuda, BetweenGemmsGivesTheSameBitsForEveryTilingModeAndEdge) {
  const auto device = open_cuda_device();
  add_gemm(*device);
  add_activation(*device);
  for (const ChainCase& c : chain_cases()) {
    const ChainResult expected =
        run_chain(*device, {.name = "untiled", .inner = c.inner}, {.mode = Mode::kSerial});
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
        SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap") +
                     (submit == Submit::kEager ? ", eager" : ", graph"));
        const ChainResult result = run_chain(*device, c, {.mode = mode, .submit = submit});
        EXPECT_EQ(result.act, expected.act);
        EXPECT_EQ(result.z, expected.z);
      }
    }
    SCOPED_TRACE(c.name + ", programmatic");
    const ChainResult early = run_chain(*device, c, {}, {.kind = EdgeKind::kProgrammatic});
    EXPECT_EQ(early.z, expected.z);
  }
}

}  // namespace
}  // namespace tileweave

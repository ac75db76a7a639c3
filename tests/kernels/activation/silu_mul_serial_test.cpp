// SiLU-mul: the reference by hand, and the CPU form's arithmetic and declared boxes without a
// device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/serial_lane.h"
#include "tileweave/kernels/activation/silu_mul.h"
#include "tileweave/kernels/activation/silu_mul_args.h"
#include "tileweave/kernels/activation/silu_mul_ref.h"

namespace tileweave {
namespace {

std::vector<float> silu_mul_of(const std::vector<float>& gate_up, std::int64_t cols,
                               const SiluMulOptions& options) {
  const std::int64_t rows = static_cast<std::int64_t>(gate_up.size()) / (2 * cols);
  TensorTable tensors;
  const TensorId x = tensors.add({.name = "gate_up", .shape = {rows, 2 * cols}});
  const TensorId y = tensors.add({.name = "out", .shape = {rows, cols}});
  const NodeSpec node = silu_mul(tensors, options, x, y);
  KernelLibrary kernels;
  add_activation_cpu(kernels);
  std::vector<float> copy = gate_up, out(gate_up.size() / 2);
  const SerialLane lane = run_serially<SiluMulOperands::kSlots>(
      node, tensors, kernels, {.operands = {copy.data(), out.data()}});
  EXPECT_EQ(lane.signals(), node.num_works);
  return out;
}

void expect_near_reference(const std::vector<float>& gate_up, std::int64_t cols) {
  const std::vector<double> exact = silu_mul_reference(gate_up, cols);
  const std::vector<float> out = silu_mul_of(gate_up, cols, {});
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto n = static_cast<std::size_t>(cols);
    const std::size_t gate = i / n * 2 * n + i % n;
    ASSERT_LE(std::fabs(out[i] - exact[i]), silu_mul_error_bound(exact[i], gate_up[gate + n]))
        << "gate " << gate_up[gate] << ", up " << gate_up[gate + n];
  }
}

TEST(SiluMulReference, ByHand) {
  // Rows of gate 0, 1 and up 5, 2.
  const std::vector<double> exact = silu_mul_reference(std::vector<float>{0, 1, 5, 2}, 2);
  EXPECT_EQ(exact, (std::vector<double>{0, 2 / (1 + std::exp(-1.0))}));
}

TEST(SiluMulSerial, AgreesWithTheReferenceForEveryShape) {
  for (const std::int64_t rows : {1, 7, 8, 9, 67}) {
    for (const std::int64_t cols : {1, 2, 15, 16, 17, 131}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
      std::vector<float> gate_up = random_values<float>(rows * 2 * cols, 51);
      for (float& value : gate_up) value *= 12;
      expect_near_reference(gate_up, cols);
    }
  }
}

TEST(SiluMulSerial, AgreesWithTheReferenceOverTheWholeRangeOfGates) {
  // One row; gates from -150 to 150 in steps of 1/64, past where exp overflows and vanishes.
  std::vector<float> gates, gate_up;
  for (int i = -150 * 64; i <= 150 * 64; ++i) gates.push_back(static_cast<float>(i) / 64);
  for (const float gate :
       {std::numeric_limits<float>::denorm_min(), 1e-30F, -1e-30F, 3e38F, -3e38F}) {
    gates.push_back(gate);
  }
  const auto cols = static_cast<std::int64_t>(gates.size());
  gate_up = gates;
  gate_up.insert(gate_up.end(), gates.size(), 0.75F);
  expect_near_reference(gate_up, cols);
}

TEST(SiluMulSerial, NotANumberAndInfinityComeThroughAsInTheFormula) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> out = silu_mul_of({nan, inf, 1, 1, 1, nan}, 3, {});
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], inf);
  EXPECT_TRUE(std::isnan(out[2]));
}

TEST(SiluMulSerial, BitsOfAnElementDoNotDependOnTilesOrderOrItsNeighbours) {
  const std::int64_t rows = 13, cols = 67;
  std::vector<float> gate_up = random_values<float>(rows * 2 * cols, 52);
  for (float& value : gate_up) value *= 9;
  const auto expected = silu_mul_of(gate_up, cols, {});
  for (const std::int64_t tile_m : {1, 4, 13}) {
    for (const std::int64_t tile_n : {1, 16, 31, 66, 67, 100}) {
      for (const std::int64_t num_blocks : {0, 3}) {
        EXPECT_EQ(silu_mul_of(gate_up, cols,
                              {.tile_m = tile_m,
                               .tile_n = tile_n,
                               .num_blocks = num_blocks,
                               .order = TileOrder::rotation(1)}),
                  expected)
            << tile_m << " x " << tile_n << ", " << num_blocks << " blocks";
      }
    }
  }
  const std::vector<float> row(gate_up.begin() + 5 * 2 * cols, gate_up.begin() + 6 * 2 * cols);
  const auto alone = silu_mul_of(row, cols, {});
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), expected.begin() + 5 * cols));
}

TEST(SiluMulNode, RefusesWhatDoesNotFitInOneSentence) {
  TensorTable tensors;
  const auto matrix = [&](const char* name, const Shape& shape, DType type = DType::kF32) {
    return tensors.add({.name = name, .shape = shape, .dtype = type});
  };
  const TensorId x = matrix("x", {3, 8}), y = matrix("y", {3, 4}), odd = matrix("odd", {3, 7});
  const TensorId half = matrix("half", {3, 4}, DType::kF16), vector = matrix("vector", {8});
  const TensorId constant =
      tensors.add({.name = "c", .shape = {3, 4}, .kind = TensorKind::kConstant});
  const auto sentence = [&](const SiluMulOptions& options, TensorId gate_up, TensorId out) {
    try {
      silu_mul(tensors, options, gate_up, out);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string who = "make silu_mul node `silu_mul`: ";
  EXPECT_EQ(sentence({}, x, y), "no error");
  EXPECT_EQ(sentence({}, vector, y), who + "`vector` must be a matrix, got shape (8)");
  EXPECT_EQ(sentence({}, x, half), who + "`half` must be f32 or bf16, got f16");
  EXPECT_EQ(sentence({}, odd, y),
            who + "`odd` must have an even number of columns, gate and up, got (3, 7)");
  EXPECT_EQ(sentence({}, x, x), who + "`x` must be (3, 4), got (3, 8)");
  EXPECT_EQ(sentence({}, x, constant), who + "the result `c` must not be constant, got a constant");
  EXPECT_EQ(sentence({.tile_m = 0}, x, y), who + "tile_m must be at least 1, got 0");
  EXPECT_EQ(sentence({.tile_n = -1}, x, y), who + "tile_n must be at least 0, got -1");
}

}  // namespace
}  // namespace tileweave

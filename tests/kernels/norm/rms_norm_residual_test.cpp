// RMSNorm with residual: its arithmetic and boxes without a device, and between GEMMs on the
// emulated device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/serial_lane.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/norm/rms_norm_residual.h"
#include "tileweave/kernels/norm/rms_norm_residual_args.h"
#include "tileweave/kernels/norm/rms_norm_residual_ref.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

struct Result {
  std::vector<float> sum, y;
  bool operator==(const Result&) const = default;
};

template <class W>
Result add_and_normalise(const std::vector<float>& x, const std::vector<float>& delta,
                         const std::vector<W>& weight, const RmsNormResidualOptions& options) {
  const auto cols = static_cast<std::int64_t>(weight.size());
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / cols;
  TensorTable tensors;
  const auto matrix = [&](const char* name) {
    return tensors.add({.name = name, .shape = {rows, cols}});
  };
  const RmsNormResidualTensors operands{
      .x = matrix("x"),
      .delta = matrix("delta"),
      .weight = tensors.add(
          {.name = "w", .shape = {cols}, .dtype = kDTypeOf<W>, .kind = TensorKind::kConstant}),
      .sum = matrix("sum"),
      .y = matrix("y")};
  const NodeSpec node = rms_norm_residual(tensors, options, operands);
  KernelLibrary kernels;
  add_norm_cpu(kernels);
  std::vector<float> x_copy = x;
  std::vector<float> delta_copy = delta;
  std::vector<W> w_copy = weight;
  Result result{std::vector<float>(x.size()), std::vector<float>(x.size())};
  const SerialLane lane = run_serially<RmsNormResidualOperands::kSlots>(
      node, tensors, kernels,
      {.operands = {x_copy.data(), delta_copy.data(), w_copy.data(), result.sum.data(),
                    result.y.data()}});
  EXPECT_EQ(lane.signals(), 2 * node.num_works);
  return result;
}

template <class W>
void expect_near_reference() {
  for (const auto& [rows, cols] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {1, 67}, {9, 31}, {8, 32}, {7, 33}, {17, 131}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
    const auto x = random_values<float>(rows * cols, 21);
    const auto delta = random_values<float>(rows * cols, 22);
    const auto weight = random_values<W>(cols, 23);
    const auto exact = rms_norm_residual_reference<W>(x, delta, weight, 1e-5F);
    const Result result = add_and_normalise<W>(x, delta, weight, {});
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_LE(std::fabs(result.sum[i] - exact.sum[i]), rms_norm_residual_sum_bound(exact.sum[i]))
          << "sum, element " << i;
      ASSERT_LE(std::fabs(result.y[i] - exact.y[i]), rms_norm_residual_y_bound(exact.y[i], cols))
          << "y, element " << i;
    }
  }
}

TEST(RmsNormResidual, ReferenceByHand) {
  const std::vector<float> x{3, -1, 0, 1};
  const std::vector<float> delta{1, 1, 0, -1};  // s: 4 0 0 0, mean of squares 4
  const auto exact =
      rms_norm_residual_reference<float>(x, delta, std::vector<float>{1, 2, 3, 4}, 0);
  EXPECT_EQ(exact.sum, (std::vector<double>{4, 0, 0, 0}));
  EXPECT_EQ(exact.y, (std::vector<double>{2, 0, 0, 0}));
}

TEST(RmsNormResidual, EveryTypeOfWeightAgreesWithTheReference) {
  expect_near_reference<float>();
  expect_near_reference<BFloat16>();
  expect_near_reference<Float16>();
}

TEST(RmsNormResidual, BitsOfARowDoNotDependOnTilesOrderOrTheRowsAroundIt) {
  const auto x = random_values<float>(13 * 67, 24);
  const auto delta = random_values<float>(13 * 67, 25);
  const auto weight = random_values<float>(67, 26);
  const Result expected = add_and_normalise<float>(x, delta, weight, {});
  for (const RmsNormResidualOptions& options :
       {RmsNormResidualOptions{.tile_m = 1}, RmsNormResidualOptions{.tile_m = 13},
        RmsNormResidualOptions{.tile_m = 4, .num_blocks = 2},
        RmsNormResidualOptions{.tile_m = 2, .order = TileOrder::rotation(3)}}) {
    EXPECT_TRUE(add_and_normalise<float>(x, delta, weight, options) == expected);
  }
  for (const std::ptrdiff_t row : {0, 5, 12}) {
    const auto one = [&](const std::vector<float>& all) {
      return std::vector<float>(all.begin() + row * 67, all.begin() + row * 67 + 67);
    };
    const Result alone = add_and_normalise<float>(one(x), one(delta), weight, {});
    EXPECT_EQ(alone.sum, one(expected.sum));
    EXPECT_EQ(alone.y, one(expected.y));
  }
}

TEST(RmsNormResidual, RefusesWhatDoesNotFitInOneSentence) {
  TensorTable tensors;
  const auto matrix = [&](const char* name, DType type = DType::kF32) {
    return tensors.add({.name = name, .shape = {4, 8}, .dtype = type});
  };
  const TensorId x = matrix("x"), delta = matrix("delta"), sum = matrix("sum"), y = matrix("y");
  const TensorId bf16 = matrix("b", DType::kBF16);
  const TensorId w = tensors.add({.name = "w", .shape = {8}, .kind = TensorKind::kConstant});
  const TensorId i32 =
      tensors.add({.name = "i", .shape = {8}, .dtype = DType::kI32, .kind = TensorKind::kConstant});
  const TensorId over_x = tensors.add({.name = "x2", .shape = {4, 8}, .shares_buffer_with = x});
  const TensorId again = tensors.add({.name = "x3", .shape = {4, 8}, .shares_buffer_with = x});
  const auto sentence = [&](const RmsNormResidualTensors& operands, std::int64_t tile_m = 8) {
    try {
      rms_norm_residual(tensors, {.name = "n", .tile_m = tile_m}, operands);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(sentence({x, delta, w, sum, y}), "no error");
  EXPECT_EQ(sentence({x, delta, w, over_x, y}), "no error");
  const std::string who = "make rms_norm_residual node `n`: ";
  EXPECT_EQ(sentence({w, delta, w, sum, y}), who + "`w` must be a matrix, got shape (8)");
  EXPECT_EQ(sentence({x, w, w, sum, y}), who + "`w` must be (4, 8), got (8)");
  EXPECT_EQ(sentence({x, bf16, w, sum, y}), who + "`b` must be f32, got bf16");
  EXPECT_EQ(sentence({x, delta, y, sum, y}), who + "`y` must be (8), got (4, 8)");
  EXPECT_EQ(sentence({x, delta, i32, sum, y}), who + "`i` must be f32, bf16 or f16, got i32");
  EXPECT_EQ(sentence({x, delta, w, y, y}), who + "sum and y must be two values, got `y` as both");
  EXPECT_EQ(sentence({x, delta, w, over_x, again}),
            who + "sum and y must lie in different buffers, got one buffer for both");
  EXPECT_EQ(sentence({x, delta, w, x, y}),
            who +
                "the result must be another value than the operands (it may share a buffer), got "
                "`x` as both");
  EXPECT_EQ(sentence({x, delta, w, sum, y}, 0), who + "tile_m must be at least 1, got 0");
}

/// X W = A, X V = D, (S, Y) = norm of A + D, Z = Y U, and S U, so that both results are waited for.
struct ChainCase {
  std::string name;
  Coord a_tiles = {}, d_tiles = {}, s_tiles = {}, y_tiles = {};
  RmsNormResidualOptions norm = {};
  bool in_place = false;  // S over A, Y over D
};

std::vector<ChainCase> chain_cases() {
  return {{"rows", {16, 72}, {8, 72}, {16, 72}, {16, 72}},
          {"rows that divide nothing", {7, 72}, {4, 72}, {5, 72}, {3, 72}, {.tile_m = 3}},
          {"columns", {45, 10}, {45, 24}, {45, 16}, {45, 31}, {.tile_m = 4}},
          {"2-D", {6, 20}, {11, 9}, {9, 31}, {4, 40}, {.tile_m = 5}},
          {"persistent blocks", {8, 72}, {8, 72}, {8, 72}, {8, 72}, {.tile_m = 2, .num_blocks = 3}},
          {"in place", {16, 72}, {16, 72}, {16, 72}, {16, 72}, {}, true}};
}

struct ChainResult {
  std::vector<float> s, y, z, t;
  bool operator==(const ChainResult&) const = default;
};

ChainResult run_chain(Device& device, const ChainCase& c, const RunOptions& options) {
  const std::int64_t m = 45, k = 33, n = 72, p = 40;
  Plan plan({.num_streams = 3, .edge = {.start = StartRule::kWaitAll}});
  const auto constant = [&](const char* name, const Shape& shape) {
    return plan.tensor({.name = name, .shape = shape, .kind = TensorKind::kConstant});
  };
  const auto value = [&](const char* name, const Coord& tiles, TensorId shared = kNoTensor) {
    return plan.tensor({.name = name,
                        .shape = {m, n},
                        .tiles = tiles,
                        .shares_buffer_with = shared,
                        .output = shared != kNoTensor || !c.in_place});
  };
  const TensorId x = constant("X", {m, k}), w = constant("W", {k, n}), v = constant("V", {k, n});
  const TensorId weight = constant("weight", {n}), u = constant("U", {n, p});
  const TensorId a = value("A", c.a_tiles), d = value("D", c.d_tiles);
  const TensorId s = value("S", c.s_tiles, c.in_place ? a : kNoTensor);
  const TensorId y = value("Y", c.y_tiles, c.in_place ? d : kNoTensor);
  const TensorId z = plan.tensor({.name = "Z", .shape = {m, p}, .output = true});
  const TensorId t = plan.tensor({.name = "T", .shape = {m, p}, .output = true});
  plan.add(gemm(plan.tensors(), {.name = "a", .tile_m = 16, .tile_n = 24}, x, w, a));
  plan.add(gemm(plan.tensors(), {.name = "d", .tile_m = 8, .tile_n = 40}, x, v, d));
  plan.add(rms_norm_residual(plan.tensors(), c.norm, {a, d, weight, s, y}));
  plan.add(gemm(plan.tensors(), {.name = "z", .tile_m = 12, .tile_n = 20}, y, u, z));
  plan.add(gemm(plan.tensors(), {.name = "t", .tile_m = 10, .tile_n = 16}, s, u, t));
  Program program(device, plan, options);
  program.write(x, random_values<float>(m * k, 1));
  program.write(w, random_values<float>(k * n, 2));
  program.write(v, random_values<float>(k * n, 3));
  program.write(weight, random_values<float>(n, 4));
  program.write(u, random_values<float>(n * p, 5));
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  return {program.read<float>(s), program.read<float>(y), program.read<float>(z),
          program.read<float>(t)};
}

TEST(RmsNormResidual, BetweenGemmsEveryTilingModeAndScheduleGivesTheSameBits) {
  const auto add_all = [](Device& device) {
    add_gemm_cpu(device.kernels());
    add_norm_cpu(device.kernels());
  };
  const auto device = open_cpu_device({.num_sms = 3, .check_views = CheckViews::kOn});
  add_all(*device);
  const ChainResult expected = run_chain(*device, {.name = "untiled"}, {.mode = Mode::kSerial});
  for (const ChainCase& c : chain_cases()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap"));
      EXPECT_TRUE(run_chain(*device, c, {.mode = mode}) == expected);
    }
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      const auto explored = open_cpu_device({.way = CpuWay::kExplore,
                                             .num_sms = seed % 2 == 0 ? 2 : 7,
                                             .seed = seed,
                                             .delay_probability = 0.2,
                                             .check_views = CheckViews::kOn});
      add_all(*explored);
      ASSERT_TRUE(run_chain(*explored, c, {}) == expected);
    }
  }
}

}  // namespace
}  // namespace tileweave

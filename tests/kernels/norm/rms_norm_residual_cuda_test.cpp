// RMSNorm with residual on a GPU: against the reference, row by row, and between GEMMs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/rounded_bound.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/norm/rms_norm_residual.h"
#include "tileweave/kernels/norm/rms_norm_residual_ref.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

struct Result {
  std::vector<float> sum, y;  // y as fp32, whatever its type
  bool operator==(const Result&) const = default;
};

template <class Y>
std::vector<float> as_floats(const std::vector<Y>& values) {
  std::vector<float> floats;
  floats.reserve(values.size());
  for (const Y value : values) floats.push_back(to_float(value));
  return floats;
}

template <class W, class Y>
Result add_and_normalise(Device& device, const std::vector<float>& x,
                         const std::vector<float>& delta, const std::vector<W>& weight,
                         const RmsNormResidualOptions& options = {}) {
  const auto cols = static_cast<std::int64_t>(weight.size());
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / cols;
  Plan plan;
  const auto constant = [&](const char* name, const Shape& shape, DType type) {
    return plan.tensor(
        {.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  const auto result = [&](const char* name, DType type) {
    return plan.tensor({.name = name, .shape = {rows, cols}, .dtype = type, .output = true});
  };
  const RmsNormResidualTensors t{.x = constant("x", {rows, cols}, DType::kF32),
                                 .delta = constant("delta", {rows, cols}, DType::kF32),
                                 .weight = constant("w", {cols}, kDTypeOf<W>),
                                 .sum = result("sum", DType::kF32),
                                 .y = result("y", kDTypeOf<Y>)};
  plan.add(rms_norm_residual(plan.tensors(), options, t));
  Program program(device, plan);
  program.write(t.x, x);
  program.write(t.delta, delta);
  program.write(t.weight, weight);
  program.run();
  program.synchronize();
  return {program.read<float>(t.sum), as_floats(program.read<Y>(t.y))};
}

template <class W, class Y>
void expect_near_reference(Device& device, std::int64_t rows, std::int64_t cols) {
  const auto x = random_values<float>(rows * cols, 21);
  const auto delta = random_values<float>(rows * cols, 22);
  const auto weight = random_values<W>(cols, 23);
  const auto exact = rms_norm_residual_reference<W>(x, delta, weight, 1e-5F);
  const Result result = add_and_normalise<W, Y>(device, x, delta, weight);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_LE(std::fabs(result.sum[i] - exact.sum[i]), rms_norm_residual_sum_bound(exact.sum[i]))
        << "sum, element " << i << " of " << rows << " x " << cols;
    ASSERT_LE(std::fabs(result.y[i] - exact.y[i]),
              rounded_bound(exact.y[i], rms_norm_residual_y_bound(exact.y[i], cols), kDTypeOf<Y>))
        << "y, element " << i << " of " << rows << " x " << cols << ", weight "
        << name_of(kDTypeOf<W>) << ", y " << name_of(kDTypeOf<Y>);
  }
}

TEST(RmsNormResidualCuda, EveryCombinationOfTypesAgreesWithTheReference) {
  const auto device = open_cuda_device();
  add_norm(*device);
  // Around a thread's eight elements, a chunk of the block (2048) and what registers hold (8192).
  const std::vector<std::pair<std::int64_t, std::int64_t>> sizes = {
      {1, 1},    {7, 31},   {8, 8},    {9, 131},  {67, 72},   {3, 1024}, {16, 2048},
      {2, 2047}, {2, 2056}, {5, 4096}, {1, 8192}, {17, 5120}, {2, 8200}, {3, 10007}};
  for (const auto& [rows, cols] : sizes) {
    expect_near_reference<float, float>(*device, rows, cols);
    expect_near_reference<float, BFloat16>(*device, rows, cols);
    expect_near_reference<BFloat16, float>(*device, rows, cols);
    expect_near_reference<BFloat16, BFloat16>(*device, rows, cols);
  }
}

TEST(RmsNormResidualCuda, BitsOfARowDependOnTheRowAlone) {
  const auto device = open_cuda_device();
  add_norm(*device);
  for (const std::int64_t cols : {67, 2048, 5120, 9000}) {
    SCOPED_TRACE(std::to_string(cols) + " columns");
    auto x = random_values<float>(16 * cols, 24);
    const auto delta = random_values<float>(16 * cols, 25);
    const auto weight = random_values<BFloat16>(cols, 26);
    std::fill_n(x.begin() + 3 * cols, cols, std::numeric_limits<float>::quiet_NaN());
    const Result among = add_and_normalise<BFloat16, BFloat16>(*device, x, delta, weight);
    const auto one = [&](const std::vector<float>& all, std::int64_t row) {
      return std::vector<float>(all.begin() + row * cols, all.begin() + (row + 1) * cols);
    };
    for (const std::int64_t row : {0, 2, 4, 15}) {
      const Result alone =
          add_and_normalise<BFloat16, BFloat16>(*device, one(x, row), one(delta, row), weight);
      EXPECT_EQ(alone.sum, one(among.sum, row)) << "row " << row;
      EXPECT_EQ(alone.y, one(among.y, row)) << "row " << row;
      for (const RmsNormResidualOptions& options :
           {RmsNormResidualOptions{.tile_m = 1}, RmsNormResidualOptions{.tile_m = 16},
            RmsNormResidualOptions{.tile_m = 3, .num_blocks = 2}}) {
        const Result tiled =
            add_and_normalise<BFloat16, BFloat16>(*device, x, delta, weight, options);
        EXPECT_EQ(one(tiled.y, row), alone.y) << "row " << row << ", tile_m " << options.tile_m;
      }
    }
  }
}

/// X W = A, X V = D, (S, Y) = norm of A + D with Y in bf16, Z = Y U, T = S Q.
struct ChainCase {
  std::string name;
  Coord a_tiles = {}, d_tiles = {}, s_tiles = {}, y_tiles = {};
  RmsNormResidualOptions norm = {};
  bool in_place = false;  // S over A
};

std::vector<ChainCase> chain_cases() {
  return {{"rows", {16, 72}, {8, 72}, {16, 72}, {16, 72}},
          {"rows of their own", {1, 72}, {1, 72}, {1, 72}, {1, 72}, {.tile_m = 1}},
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

ChainResult run_chain(Device& device, const ChainCase& c, const RunOptions& options,
                      const EdgePolicy& edge = {.start = StartRule::kWaitAll}) {
  const std::int64_t m = 45, k = 33, n = 72, p = 40;
  Plan plan({.num_streams = 3, .edge = edge});
  const auto constant = [&](const char* name, const Shape& shape, DType type = DType::kF32) {
    return plan.tensor(
        {.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  const auto value = [&](const char* name, const Coord& tiles, TensorId shared = kNoTensor,
                         DType type = DType::kF32) {
    return plan.tensor({.name = name,
                        .shape = {m, n},
                        .dtype = type,
                        .tiles = tiles,
                        .shares_buffer_with = shared,
                        .output = shared != kNoTensor || !c.in_place});
  };
  const TensorId x = constant("X", {m, k}), w = constant("W", {k, n}), v = constant("V", {k, n});
  const TensorId weight = constant("weight", {n}, DType::kBF16);
  const TensorId u = constant("U", {n, p}, DType::kBF16), q = constant("Q", {n, p});
  const TensorId a = value("A", c.a_tiles), d = value("D", c.d_tiles);
  const TensorId s = value("S", c.s_tiles, c.in_place ? a : kNoTensor);
  const TensorId y = value("Y", c.y_tiles, kNoTensor, DType::kBF16);
  const TensorId z = plan.tensor({.name = "Z", .shape = {m, p}, .output = true});
  const TensorId t = plan.tensor({.name = "T", .shape = {m, p}, .output = true});
  plan.add(gemm(plan.tensors(), {.name = "a", .tile_m = 16, .tile_n = 24}, x, w, a));
  plan.add(gemm(plan.tensors(), {.name = "d", .tile_m = 8, .tile_n = 40}, x, v, d));
  plan.add(rms_norm_residual(plan.tensors(), c.norm, {a, d, weight, s, y}));
  plan.add(gemm(plan.tensors(), {.name = "z", .tile_m = 12, .tile_n = 20}, y, u, z));
  plan.add(gemm(plan.tensors(), {.name = "t", .tile_m = 10, .tile_n = 16}, s, q, t));
  Program program(device, plan, options);
  program.write(x, random_values<float>(m * k, 1));
  program.write(w, random_values<float>(k * n, 2));
  program.write(v, random_values<float>(k * n, 3));
  program.write(weight, random_values<BFloat16>(n, 4));
  program.write(u, random_values<BFloat16>(n * p, 5));
  program.write(q, random_values<float>(n * p, 6));
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  // Y is no output in place: only what follows from it is.
  return {program.read<float>(s),
          c.in_place ? std::vector<float>{} : as_floats(program.read<BFloat16>(y)),
          program.read<float>(z), program.read<float>(t)};
}

TEST(RmsNormResidualCuda, BetweenGemmsGivesTheSameBitsForEveryTilingModeAndEdge) {
  const auto device = open_cuda_device();
  add_gemm(*device);
  add_norm(*device);
  const ChainResult expected = run_chain(*device, {.name = "untiled"}, {.mode = Mode::kSerial});
  for (const ChainCase& c : chain_cases()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
        SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap") +
                     (submit == Submit::kEager ? ", eager" : ", graph"));
        const ChainResult result = run_chain(*device, c, {.mode = mode, .submit = submit});
        EXPECT_EQ(result.s, expected.s);
        if (!c.in_place) {
          EXPECT_EQ(result.y, expected.y);
        }
        EXPECT_EQ(result.z, expected.z);
        EXPECT_EQ(result.t, expected.t);
      }
    }
    SCOPED_TRACE(c.name + ", programmatic");
    const ChainResult early = run_chain(*device, c, {}, {.kind = EdgeKind::kProgrammatic});
    EXPECT_EQ(early.z, expected.z);
    EXPECT_EQ(early.t, expected.t);
  }
}

}  // namespace
}  // namespace tileweave

// QK-norm: its arithmetic and boxes without a device, and between GEMMs on the emulated device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/serial_lane.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/norm/qk_norm.h"
#include "tileweave/kernels/norm/qk_norm_args.h"
#include "tileweave/kernels/norm/qk_norm_ref.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/norm/rms_norm_ref.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

template <class W>
std::vector<float> normalise(const std::vector<float>& qkv, const std::vector<W>& q_weight,
                             const std::vector<W>& k_weight, const QkNormOptions& options) {
  const auto dim = static_cast<std::int64_t>(q_weight.size());
  const std::int64_t cols = (options.heads + 2 * options.kv_heads) * dim;
  const std::int64_t rows = static_cast<std::int64_t>(qkv.size()) / cols;
  TensorTable tensors;
  const TensorId x = tensors.add({.name = "qkv", .shape = {rows, cols}});
  const auto weight = [&](const char* name) {
    return tensors.add(
        {.name = name, .shape = {dim}, .dtype = kDTypeOf<W>, .kind = TensorKind::kConstant});
  };
  const TensorId wq = weight("wq"), wk = weight("wk");
  const TensorId y = tensors.add({.name = "out", .shape = {rows, cols}});
  const NodeSpec node = qk_norm(tensors, options, x, wq, wk, y);
  KernelLibrary kernels;
  add_norm_cpu(kernels);
  std::vector<float> x_copy = qkv;
  std::vector<W> q_copy = q_weight, k_copy = k_weight;
  std::vector<float> out(qkv.size());
  const SerialLane lane = run_serially<QkNormOperands::kSlots>(
      node, tensors, kernels,
      {.operands = {x_copy.data(), q_copy.data(), k_copy.data(), out.data()}});
  EXPECT_EQ(lane.signals(), node.num_works);
  return out;
}

template <class W>
void expect_near_reference() {
  struct Size {
    std::int64_t rows, heads, kv_heads, dim;
  };
  for (const Size& s : {Size{1, 1, 1, 1}, Size{7, 3, 1, 5}, Size{8, 4, 2, 16}, Size{9, 5, 5, 17},
                        Size{3, 6, 2, 64}}) {
    SCOPED_TRACE(std::to_string(s.rows) + " rows, " + std::to_string(s.heads) + " + 2 x " +
                 std::to_string(s.kv_heads) + " heads of " + std::to_string(s.dim));
    const auto qkv = random_values<float>(s.rows * (s.heads + 2 * s.kv_heads) * s.dim, 31);
    const auto q_weight = random_values<W>(s.dim, 32);
    const auto k_weight = random_values<W>(s.dim, 33);
    const QkNormOptions options{.heads = s.heads, .kv_heads = s.kv_heads};
    const auto exact =
        qk_norm_reference<W>({s.heads, s.kv_heads}, qkv, q_weight, k_weight, options.eps);
    const auto result = normalise<W>(qkv, q_weight, k_weight, options);
    for (std::size_t i = 0; i < result.size(); ++i) {
      ASSERT_LE(std::fabs(result[i] - exact[i]), rms_norm_error_bound(exact[i], s.dim, DType::kF32))
          << "element " << i;
      const auto head = static_cast<std::int64_t>(i) / s.dim % (s.heads + 2 * s.kv_heads);
      if (head >= s.heads + s.kv_heads) {
        ASSERT_EQ(result[i], qkv[i]) << "value " << i;
      }
    }
  }
}

TEST(QkNorm, ReferenceByHand) {
  // One query head, one key head, one value head of two elements; mean of squares 4 and 1.
  const std::vector<float> qkv{2, -2, 1, 1, 7, 8};
  const auto exact =
      qk_norm_reference<float>({1, 1}, qkv, std::vector<float>{1, 3}, std::vector<float>{5, 6}, 0);
  EXPECT_EQ(exact, (std::vector<double>{1, -3, 5, 6, 7, 8}));
}

TEST(QkNorm, EveryTypeOfWeightAgreesWithTheReference) {
  expect_near_reference<float>();
  expect_near_reference<BFloat16>();
  expect_near_reference<Float16>();
}

TEST(QkNorm, BitsOfAHeadDependOnTheHeadAlone) {
  const std::int64_t dim = 19, cols = 10 * dim;
  const auto qkv = random_values<float>(13 * cols, 34);
  const auto wq = random_values<float>(dim, 35), wk = random_values<float>(dim, 36);
  const QkNormOptions whole{.heads = 6, .kv_heads = 2};
  const auto expected = normalise<float>(qkv, wq, wk, whole);
  for (const std::int64_t tile_m : {1, 4, 13}) {
    for (const std::int64_t tile_heads : {1, 3, 4, 9, 10}) {
      for (const std::int64_t num_blocks : {0, 2}) {
        QkNormOptions options = whole;
        options.tile_m = tile_m;
        options.tile_heads = tile_heads;
        options.num_blocks = num_blocks;
        options.order = TileOrder::rotation(1);
        EXPECT_EQ(normalise<float>(qkv, wq, wk, options), expected)
            << tile_m << " x " << tile_heads << ", " << num_blocks << " blocks";
      }
    }
  }
  const std::vector<float> row(qkv.begin() + 5 * cols, qkv.begin() + 6 * cols);
  const auto alone = normalise<float>(row, wq, wk, whole);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), expected.begin() + 5 * cols));
}

TEST(QkNorm, RefusesWhatDoesNotFitInOneSentence) {
  TensorTable tensors;
  const TensorId qkv = tensors.add({.name = "qkv", .shape = {4, 32}});
  const TensorId out = tensors.add({.name = "out", .shape = {4, 32}});
  const auto vector = [&](const char* name, std::int64_t size, DType type = DType::kF32) {
    return tensors.add(
        {.name = name, .shape = {size}, .dtype = type, .kind = TensorKind::kConstant});
  };
  const TensorId w = vector("w", 8), short_w = vector("s", 4), half = vector("h", 8, DType::kF16);
  const TensorId produced = tensors.add({.name = "p", .shape = {8}});
  const auto sentence = [&](const QkNormOptions& options, TensorId x, TensorId wq, TensorId wk,
                            TensorId y) {
    try {
      qk_norm(tensors, options, x, wq, wk, y);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const QkNormOptions fits{.name = "n", .heads = 2, .kv_heads = 1};
  const std::string who = "make qk_norm node `n`: ";
  EXPECT_EQ(sentence(fits, qkv, w, w, out), "no error");
  EXPECT_EQ(sentence({.name = "n", .kv_heads = 1}, qkv, w, w, out),
            who + "heads must be at least 1, got 0");
  EXPECT_EQ(sentence({.name = "n", .heads = 3, .kv_heads = 1}, qkv, w, w, out),
            who + "`qkv` must be (T, 40) for 5 heads of 8, got (4, 32)");
  EXPECT_EQ(sentence(fits, qkv, w, short_w, out),
            who + "`s` must be (8) f32 like `w`, got (4) f32");
  EXPECT_EQ(sentence(fits, qkv, w, half, out), who + "`h` must be (8) f32 like `w`, got (8) f16");
  EXPECT_EQ(sentence(fits, qkv, produced, w, out),
            who + "the weight `p` must be constant, got value");
  EXPECT_EQ(sentence(fits, qkv, w, w, w), who + "`w` must be (4, 32), got (8)");
  EXPECT_EQ(sentence(fits, qkv, w, w, qkv),
            who +
                "the result must be another value than the operand (it may share its buffer), got "
                "`qkv` as both");
}

struct ChainCase {
  std::string name;
  Coord in_tiles = {}, out_tiles = {};
  QkNormOptions norm = {};
  bool in_place = false;
};

std::vector<ChainCase> chain_cases() {
  return {{"rows", {16, 80}, {16, 80}},
          {"columns", {45, 16}, {45, 24}, {.tile_m = 45, .tile_heads = 1}},
          {"2-D", {6, 20}, {9, 31}, {.tile_m = 5, .tile_heads = 3}},
          {"persistent blocks", {8, 40}, {8, 16}, {.tile_m = 4, .tile_heads = 4, .num_blocks = 3}},
          {"in place", {16, 40}, {16, 40}, {.tile_m = 7, .tile_heads = 5}, true}};
}

std::vector<float> run_chain(Device& device, const ChainCase& c, const RunOptions& options) {
  const std::int64_t m = 45, k = 33, dim = 8, n = 10 * dim, p = 24;
  Plan plan({.num_streams = 3, .edge = {.start = StartRule::kWaitAll}});
  const auto constant = [&](const char* name, const Shape& shape) {
    return plan.tensor({.name = name, .shape = shape, .kind = TensorKind::kConstant});
  };
  const TensorId x = constant("X", {m, k}), w = constant("W", {k, n}), v = constant("V", {n, p});
  const TensorId wq = constant("wq", {dim}), wk = constant("wk", {dim});
  const TensorId qkv = plan.tensor({.name = "QKV", .shape = {m, n}, .tiles = c.in_tiles});
  const TensorId out = plan.tensor({.name = "N",
                                    .shape = {m, n},
                                    .tiles = c.out_tiles,
                                    .shares_buffer_with = c.in_place ? qkv : kNoTensor});
  const TensorId z = plan.tensor({.name = "Z", .shape = {m, p}, .output = true});
  QkNormOptions norm = c.norm;
  norm.heads = 6;
  norm.kv_heads = 2;
  plan.add(gemm(plan.tensors(), {.tile_m = 16, .tile_n = 24}, x, w, qkv));
  plan.add(qk_norm(plan.tensors(), norm, qkv, wq, wk, out));
  plan.add(gemm(plan.tensors(), {.tile_m = 12, .tile_n = 20}, out, v, z));
  Program program(device, plan, options);
  program.write(x, random_values<float>(m * k, 1));
  program.write(w, random_values<float>(k * n, 2));
  program.write(v, random_values<float>(n * p, 3));
  program.write(wq, random_values<float>(dim, 4));
  program.write(wk, random_values<float>(dim, 5));
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  return program.read<float>(z);
}

TEST(QkNorm, BetweenGemmsEveryTilingModeAndScheduleGivesTheSameBits) {
  const auto add_all = [](Device& device) {
    add_gemm_cpu(device.kernels());
    add_norm_cpu(device.kernels());
  };
  const auto device = open_cpu_device({.num_sms = 3, .check_views = CheckViews::kOn});
  add_all(*device);
  const auto expected = run_chain(*device, {.name = "untiled"}, {.mode = Mode::kSerial});
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

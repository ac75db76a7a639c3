// QK-norm on a GPU: against the reference, head by head, and between GEMMs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/norm/qk_norm.h"
#include "tileweave/kernels/norm/qk_norm_ref.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/norm/rms_norm_ref.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

template <class W>
std::vector<float> normalise(Device& device, const std::vector<float>& qkv,
                             const std::vector<W>& q_weight, const std::vector<W>& k_weight,
                             const QkNormOptions& options) {
  const auto dim = static_cast<std::int64_t>(q_weight.size());
  const std::int64_t cols = (options.heads + 2 * options.kv_heads) * dim;
  const std::int64_t rows = static_cast<std::int64_t>(qkv.size()) / cols;
  Plan plan;
  const auto constant = [&](const char* name, const Shape& shape, DType type) {
    return plan.tensor(
        {.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  const TensorId x = constant("qkv", {rows, cols}, DType::kF32);
  const TensorId wq = constant("wq", {dim}, kDTypeOf<W>);
  const TensorId wk = constant("wk", {dim}, kDTypeOf<W>);
  const TensorId out = plan.tensor({.name = "out", .shape = {rows, cols}, .output = true});
  plan.add(qk_norm(plan.tensors(), options, x, wq, wk, out));
  Program program(device, plan);
  program.write(x, qkv);
  program.write(wq, q_weight);
  program.write(wk, k_weight);
  program.run();
  program.synchronize();
  return program.read<float>(out);
}

struct Size {
  std::int64_t rows, heads, kv_heads, dim;
};

template <class W>
void expect_near_reference(Device& device, const Size& s) {
  SCOPED_TRACE(std::to_string(s.rows) + " rows, " + std::to_string(s.heads) + " + 2 x " +
               std::to_string(s.kv_heads) + " heads of " + std::to_string(s.dim) + ", weight " +
               name_of(kDTypeOf<W>));
  const std::int64_t heads = s.heads + 2 * s.kv_heads;
  const auto qkv = random_values<float>(s.rows * heads * s.dim, 31);
  const auto q_weight = random_values<W>(s.dim, 32);
  const auto k_weight = random_values<W>(s.dim, 33);
  const QkNormOptions options{.heads = s.heads, .kv_heads = s.kv_heads};
  const auto exact =
      qk_norm_reference<W>({s.heads, s.kv_heads}, qkv, q_weight, k_weight, options.eps);
  const auto result = normalise<W>(device, qkv, q_weight, k_weight, options);
  for (std::size_t i = 0; i < result.size(); ++i) {
    ASSERT_LE(std::fabs(result[i] - exact[i]), rms_norm_error_bound(exact[i], s.dim, DType::kF32))
        << "element " << i;
    const auto head = static_cast<std::int64_t>(i) / s.dim % heads;
    if (head >= s.heads + s.kv_heads) {
      ASSERT_EQ(result[i], qkv[i]) << "value " << i;
    }
  }
}

TEST(QkNormCuda, EveryTypeOfWeightAndHeadAgreesWithTheReference) {
  const auto device = open_cuda_device();
  add_norm(*device);
  for (const Size& s :
       {Size{1, 1, 1, 1}, Size{7, 3, 1, 5}, Size{8, 4, 2, 8}, Size{9, 5, 5, 17}, Size{3, 6, 2, 64},
        Size{16, 16, 8, 128}, Size{17, 8, 2, 80}, Size{2, 9, 3, 96}, Size{5, 4, 1, 136},
        Size{3, 2, 1, 256}, Size{4, 3, 3, 66}}) {
    expect_near_reference<float>(*device, s);
    expect_near_reference<BFloat16>(*device, s);
  }
}

TEST(QkNormCuda, BitsOfAHeadDependOnTheHeadAlone) {
  const auto device = open_cuda_device();
  add_norm(*device);
  for (const std::int64_t dim : {19, 80, 128}) {
    SCOPED_TRACE(std::to_string(dim) + " elements");
    const std::int64_t cols = 10 * dim;
    auto qkv = random_values<float>(16 * cols, 34);
    std::fill_n(qkv.begin() + 3 * cols, cols, std::numeric_limits<float>::quiet_NaN());
    const auto wq = random_values<float>(dim, 35), wk = random_values<float>(dim, 36);
    const QkNormOptions whole{.heads = 6, .kv_heads = 2};
    const auto expected = normalise<float>(*device, qkv, wq, wk, whole);
    const auto row = [&](const std::vector<float>& all, std::int64_t index) {
      return std::vector<float>(all.begin() + index * cols, all.begin() + (index + 1) * cols);
    };
    for (const std::int64_t index : {0, 2, 4, 15}) {
      EXPECT_EQ(normalise<float>(*device, row(qkv, index), wq, wk, whole), row(expected, index))
          << "row " << index << " alone";
    }
    for (const std::int64_t tile_m : {1, 4, 16}) {
      for (const std::int64_t tile_heads : {1, 3, 10}) {
        QkNormOptions options = whole;
        options.tile_m = tile_m;
        options.tile_heads = tile_heads;
        options.num_blocks = tile_heads == 3 ? 2 : 0;
        options.order = TileOrder::rotation(1);
        const auto tiled = normalise<float>(*device, qkv, wq, wk, options);
        for (const std::int64_t index : {0, 2, 4, 15}) {
          EXPECT_EQ(row(tiled, index), row(expected, index))
              << "row " << index << ", tiles of " << tile_m << " x " << tile_heads;
        }
      }
    }
  }
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

std::vector<float> run_chain(Device& device, const ChainCase& c, const RunOptions& options,
                             const EdgePolicy& edge = {.start = StartRule::kWaitAll}) {
  const std::int64_t m = 45, k = 33, dim = 8, n = 10 * dim, p = 24;
  Plan plan({.num_streams = 3, .edge = edge});
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

TEST(QkNormCuda, BetweenGemmsGivesTheSameBitsForEveryTilingModeAndEdge) {
  const auto device = open_cuda_device();
  add_gemm(*device);
  add_norm(*device);
  const auto expected = run_chain(*device, {.name = "untiled"}, {.mode = Mode::kSerial});
  for (const ChainCase& c : chain_cases()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
        SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap") +
                     (submit == Submit::kEager ? ", eager" : ", graph"));
        EXPECT_EQ(run_chain(*device, c, {.mode = mode, .submit = submit}), expected);
      }
    }
    EXPECT_EQ(run_chain(*device, c, {}, {.kind = EdgeKind::kProgrammatic}), expected)
        << c.name << ", programmatic";
  }
}

}  // namespace
}  // namespace tileweave

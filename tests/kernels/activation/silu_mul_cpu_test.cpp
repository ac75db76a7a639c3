// The feed-forward half of a layer on the emulated device, with checking views:
// embedding, RMSNorm, gate-and-up projection, SiLU-mul, down projection, RMSNorm with residual.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tileweave/kernels/activation/silu_mul.h"
#include "tileweave/kernels/embedding/embedding.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/norm/rms_norm_residual.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

struct Case {
  std::string name;
  Coord hidden_tiles = {}, gate_up_tiles = {}, inner_tiles = {};
  SiluMulOptions silu = {};
  std::int64_t tile_m = 8, embedding_tile_n = 0;  // of the other operators
};

std::vector<Case> cases() {
  return {{"rows", {16, 40}, {16, 106}, {16, 53}},
          {"rows that divide nothing", {7, 40}, {5, 106}, {3, 53}, {.tile_m = 6}, 3},
          {"columns", {37, 16}, {37, 10}, {37, 16}, {.tile_m = 37, .tile_n = 12}, 37, 9},
          {"2-D", {6, 16}, {9, 31}, {5, 20}, {.tile_m = 4, .tile_n = 7}, 5, 16},
          {"one column each", {6, 16}, {9, 31}, {5, 20}, {.tile_m = 37, .tile_n = 1}, 5, 16},
          {"persistent blocks", {8, 40}, {8, 53}, {8, 16}, {.tile_n = 16, .num_blocks = 3}, 4}};
}

struct Result {
  std::vector<float> inner, sum, y;
  bool operator==(const Result&) const = default;
};

Result run(Device& device, const Case& c, const RunOptions& options) {
  const std::int64_t m = 37, vocabulary = 50, hidden = 40, inner = 53;
  Plan plan({.num_streams = 3, .edge = {.start = StartRule::kWaitAll}});
  const auto constant = [&](const char* name, const Shape& shape, DType type = DType::kF32) {
    return plan.tensor(
        {.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  const auto value = [&](const char* name, std::int64_t cols, const Coord& tiles,
                         TensorId shared = kNoTensor) {
    return plan.tensor({.name = name,
                        .shape = {m, cols},
                        .tiles = tiles,
                        .shares_buffer_with = shared,
                        .output = true});
  };
  const TensorId ids = constant("ids", {m}, DType::kI32);
  const TensorId table = constant("table", {vocabulary, hidden}, DType::kBF16);
  const TensorId up = constant("up", {2 * inner, hidden}), down = constant("down", {hidden, inner});
  const TensorId weight = constant("weight", {hidden});
  const TensorId x = value("x", hidden, c.hidden_tiles), n = value("n", hidden, c.hidden_tiles);
  const TensorId gate_up = value("gate_up", 2 * inner, c.gate_up_tiles);
  const TensorId act = value("act", inner, c.inner_tiles);
  const TensorId delta = value("delta", hidden, c.hidden_tiles);
  const TensorId sum = value("sum", hidden, c.hidden_tiles, x);
  const TensorId y = value("y", hidden, c.hidden_tiles, delta);
  plan.add(
      embedding(plan.tensors(), {.tile_m = c.tile_m, .tile_n = c.embedding_tile_n}, ids, table, x));
  plan.add(rms_norm(plan.tensors(), {.tile_m = c.tile_m}, x, weight, n));
  plan.add(gemm(plan.tensors(),
                {.name = "up", .tile_m = 16, .tile_n = 24, .b_layout = BLayout::kNxK}, n, up,
                gate_up));
  plan.add(silu_mul(plan.tensors(), c.silu, gate_up, act));
  plan.add(gemm(plan.tensors(),
                {.name = "down", .tile_m = 12, .tile_n = 20, .b_layout = BLayout::kNxK}, act, down,
                delta));
  plan.add(rms_norm_residual(plan.tensors(), {.tile_m = c.tile_m}, {x, delta, weight, sum, y}));
  Program program(device, plan, options);
  std::vector<std::int32_t> tokens;
  for (std::int32_t t = 0; t < m; ++t) tokens.push_back(t % 11 == 10 ? -1 : t * 13 % 50);
  program.write(ids, tokens);
  program.write(table, random_values<BFloat16>(vocabulary * hidden, 1));
  program.write(up, random_values<float>(2 * inner * hidden, 2));
  program.write(down, random_values<float>(inner * hidden, 3));
  program.write(weight, random_values<float>(hidden, 4));
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  return {program.read<float>(act), program.read<float>(sum), program.read<float>(y)};
}

void add_all(Device& device) {
  add_gemm_cpu(device.kernels());
  add_norm_cpu(device.kernels());
  add_embedding_cpu(device.kernels());
  add_activation_cpu(device.kernels());
}

TEST(SiluMulCpu, InAFeedForwardEveryTilingAndModeGivesTheSameBits) {
  const auto device = open_cpu_device({.num_sms = 3, .check_views = CheckViews::kOn});
  add_all(*device);
  const Result expected = run(*device, {.name = "untiled"}, {.mode = Mode::kSerial});
  for (const Case& c : cases()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap"));
      EXPECT_TRUE(run(*device, c, {.mode = mode}) == expected);
    }
  }
}

TEST(SiluMulCpu, ExploredSchedulesGiveTheBitsOfSerial) {
  for (const Case& c : cases()) {
    Result expected;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      const auto device = open_cpu_device({.way = CpuWay::kExplore,
                                           .num_sms = seed % 2 == 0 ? 2 : 7,
                                           .seed = seed,
                                           .delay_probability = 0.2,
                                           .check_views = CheckViews::kOn});
      add_all(*device);
      if (seed == 1) expected = run(*device, c, {.mode = Mode::kSerial});
      ASSERT_TRUE(run(*device, c, {}) == expected);
    }
  }
}

}  // namespace
}  // namespace tileweave

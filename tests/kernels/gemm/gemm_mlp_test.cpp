// A gated layer of a text model on the emulated device: H = X Wᵀ, Y = silu(H Gᵀ) * (H Uᵀ),
// Z = Y Dᵀ + bias + H, with Z in H's buffer or not. Every way of running blocks, data tiling and
// split must give the bits of a serial run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/gemm/gemm_serial.h"
#include "tileweave/runtime/program.h"

namespace tileweave {
namespace {

constexpr std::int64_t kRows = 21;
constexpr std::int64_t kInner = 19;
constexpr std::int64_t kHidden = 37;
constexpr std::int64_t kFactor = 45;

enum class Place : std::uint8_t { kOwnBuffer, kInPlace };

struct Cut {
  std::string name;
  Coord h_tiles = {}, y_tiles = {};
  GemmOptions first = {}, gated = {}, last = {};
  Place z = Place::kInPlace;
};

struct Mlp {
  Plan plan;
  TensorId x, w, h, gate_up, y, down, bias, z;

  Mlp(const Cut& cut, const PlanOptions& plan_options) : plan(plan_options) {
    const auto constant = [&](const char* name, const Shape& shape, DType type) {
      return plan.tensor(
          {.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
    };
    x = constant("X", {kRows, kInner}, DType::kF32);
    w = constant("W", {kHidden, kInner}, DType::kF32);
    gate_up = constant("GU", {2 * kFactor, kHidden}, DType::kBF16);
    down = constant("D", {kHidden, kFactor}, DType::kF16);
    bias = constant("bias", {kHidden}, DType::kBF16);
    h = plan.tensor({.name = "H", .shape = {kRows, kHidden}, .tiles = cut.h_tiles});
    y = plan.tensor({.name = "Y", .shape = {kRows, kFactor}, .tiles = cut.y_tiles});
    z = plan.tensor({.name = "Z",
                     .shape = {kRows, kHidden},
                     .shares_buffer_with = cut.z == Place::kInPlace ? h : kNoTensor,
                     .output = true});
    GemmOptions first = cut.first;
    GemmOptions gated = cut.gated;
    GemmOptions last = cut.last;
    for (GemmOptions* options : {&first, &gated, &last}) options->b_layout = BLayout::kNxK;
    gated.epilogue = {.activation = GemmActivation::kSilu, .gated = true};
    last.epilogue = {.bias = bias, .residual = h};
    plan.add(gemm(plan.tensors(), first, x, w, h));
    plan.add(gemm(plan.tensors(), gated, h, gate_up, y));
    plan.add(gemm(plan.tensors(), last, y, down, z));
  }
};

std::vector<float> run(Device& device, const Cut& cut, const RunOptions& options) {
  const Mlp mlp(cut, {.edge = {.start = StartRule::kWaitAll}});
  Program program(device, mlp.plan, options);
  if (options.mode == Mode::kOverlap && cut.h_tiles.num_axes != 0) {
    // A downgraded edge would prove nothing about overlap.
    require(program.verdict().num_downgrades() == 0, "run the layer", "tile edges",
            program.verdict().table(mlp.plan));
  }
  program.write(mlp.x, random_values<float>(kRows * kInner, 1));
  program.write(mlp.w, random_values<float>(kHidden * kInner, 2));
  program.write(mlp.gate_up, random_values<BFloat16>(2 * kFactor * kHidden, 3));
  program.write(mlp.down, random_values<Float16>(kHidden * kFactor, 4));
  program.write(mlp.bias, random_values<BFloat16>(kHidden, 5));
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  return program.read<float>(mlp.z);
}

std::vector<Cut> whole_k_cuts() {
  return {
      {.name = "rows",
       .h_tiles = {8, kHidden},
       .y_tiles = {8, kFactor},
       .first = {.tile_m = 8},
       .gated = {.tile_m = 8, .tile_n = 20},
       .last = {.tile_m = 8}},
      {.name = "2-D",
       .h_tiles = {4, 16},
       .y_tiles = {4, 10},
       .first = {.tile_m = 4, .tile_n = 16},
       .gated = {.tile_m = 4, .tile_n = 10},
       .last = {.tile_m = 4, .tile_n = 16}},
      {.name = "2-D in slices of K",
       .h_tiles = {8, 10},
       .y_tiles = {8, 9},
       .first = {.tile_m = 8, .tile_n = 10},
       .gated = {.tile_m = 8, .tile_n = 9, .tile_k = 10, .wait_k = 10},
       .last = {.tile_m = 8, .tile_n = 10, .tile_k = 9, .wait_k = 18},
       .z = Place::kOwnBuffer},
      {.name = "persistent, prefetching",
       .h_tiles = {8, kHidden},
       .y_tiles = {8, kFactor},
       .first = {.tile_m = 8, .num_blocks = 2},
       .gated = {.tile_m = 8, .tile_n = 15, .num_blocks = 3, .prefetch_k = kHidden},
       .last = {.tile_m = 8, .tile_n = 20, .num_blocks = 2, .prefetch_k = 16}},
  };
}

std::vector<Cut> split_cuts() {
  return {
      {.name = "split-K",
       .h_tiles = {8, 16},
       .y_tiles = {8, 20},
       .first = {.tile_m = 8, .tile_n = 16},
       .gated = {.tile_m = 8, .tile_n = 20, .tile_k = 8, .split = GemmSplit::kSplitK, .splits = 3},
       .last = {.tile_m = 8, .tile_n = 20, .tile_k = 8, .split = GemmSplit::kSplitK, .splits = 2},
       .z = Place::kOwnBuffer},
      {.name = "Stream-K",
       .h_tiles = {8, 16},
       .y_tiles = {8, 20},
       .first = {.tile_m = 8, .tile_n = 16},
       .gated =
           {.tile_m = 8, .tile_n = 20, .tile_k = 8, .split = GemmSplit::kStreamK, .num_blocks = 7},
       .last =
           {.tile_m = 8, .tile_n = 20, .tile_k = 8, .split = GemmSplit::kStreamK, .num_blocks = 5},
       .z = Place::kOwnBuffer}};
}

std::unique_ptr<Device> open(const CpuOptions& options) {
  auto device = open_cpu_device(options);
  add_gemm_cpu(device->kernels());
  return device;
}

/// The three products by their references, each on the results of those before.
std::vector<float> by_steps() {
  const auto x = random_values<float>(kRows * kInner, 1);
  const auto w = random_values<float>(kHidden * kInner, 2);
  const auto h =
      run_gemm_serially<float, float, float>({kRows, kHidden, kInner, BLayout::kNxK}, {}, x, w);
  const FusedValues gated{.activation = GemmActivation::kSilu, .gated = true};
  const GemmShape y_shape{kRows, kFactor, kHidden, BLayout::kNxK};
  const auto gate_up = random_values<BFloat16>(2 * kFactor * kHidden, 3);
  const auto y = run_gemm_serially<float, BFloat16, float>(y_shape, {}, h, gate_up, gated);
  expect_near_reference<float, BFloat16, float>(y_shape, h, gate_up, y, 1, gated);
  FusedValues last{.residual = h, .bias_type = DType::kBF16};
  for (const BFloat16 value : random_values<BFloat16>(kHidden, 5)) {
    last.bias.push_back(to_float(value));
  }
  const GemmShape z_shape{kRows, kHidden, kFactor, BLayout::kNxK};
  const auto down = random_values<Float16>(kHidden * kFactor, 4);
  const auto z = run_gemm_serially<float, Float16, float>(z_shape, {}, y, down, last);
  expect_near_reference<float, Float16, float>(z_shape, y, down, z, 1, last);
  return z;
}

TEST(GemmMlp, EveryTilingAndModeGivesTheBitsOfTheSteps) {
  const std::vector<float> expected = by_steps();
  const auto device = open({.num_sms = 3, .check_views = CheckViews::kOn});
  for (const Cut& cut : whole_k_cuts()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      SCOPED_TRACE(cut.name + (mode == Mode::kSerial ? ", serial" : ", overlap"));
      EXPECT_EQ(run(*device, cut, {.mode = mode}), expected);
    }
  }
}

TEST(GemmMlp, ExploredSchedulesGiveTheBitsOfSerial) {
  std::vector<Cut> cuts = split_cuts();
  for (const Cut& cut : whole_k_cuts()) cuts.push_back(cut);
  for (const Cut& cut : cuts) {
    std::vector<float> expected;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE(cut.name + ", seed " + std::to_string(seed));
      const auto device = open({.way = CpuWay::kExplore,
                                .num_sms = static_cast<std::int32_t>(seed % 2 == 0 ? 2 : 7),
                                .seed = seed,
                                .delay_probability = 0.2,
                                .check_views = CheckViews::kOn});
      if (seed == 1) expected = run(*device, cut, {.mode = Mode::kSerial});
      ASSERT_EQ(run(*device, cut, {}), expected);
    }
  }
}

TEST(GemmMlp, TheResidualIsWaitedForBeforeItIsRead) {
  // The last product claims to read another tile of the residual than it does.
  const auto device = open({.num_sms = 2, .check_views = CheckViews::kOn});
  Mlp mlp(whole_k_cuts()[0], {});
  OperandSpec& residual = mlp.plan.nodes()[2].operands.back();
  ASSERT_EQ(residual.sync_slot, GemmOperands::kSlotResidual);
  residual.tiles_of_work = [](std::int64_t) { return std::vector<std::int64_t>{0}; };
  try {
    Program program(*device, mlp.plan, {.mode = Mode::kSerial});
    program.run();
    program.synchronize();
    FAIL() << "the undeclared access was not seen";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("`H`"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tileweave

// Epilogues: every combination of element types, steps and splits of K against the reference with
// its derived bound, and what must not change a bit.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/kernels/gemm/gemm_serial.h"

namespace tileweave {
namespace {

struct Step {
  std::string name;
  bool bias = false, residual = false, gated = false;
  GemmActivation activation = GemmActivation::kNone;
  DType bias_type = DType::kF32;
};

const std::vector<Step> kSteps = {
    {.name = "nothing"},
    {.name = "bias", .bias = true},
    {.name = "bias of bf16", .bias = true, .bias_type = DType::kBF16},
    {.name = "bias of f16", .bias = true, .bias_type = DType::kF16},
    {.name = "residual", .residual = true},
    {.name = "bias and residual", .bias = true, .residual = true},
    {.name = "silu", .activation = GemmActivation::kSilu},
    {.name = "bias, gelu, residual",
     .bias = true,
     .residual = true,
     .activation = GemmActivation::kGeluTanh},
    {.name = "gated silu", .gated = true, .activation = GemmActivation::kSilu},
    {.name = "gated, no activation", .gated = true},
    {.name = "gated gelu with bias and residual",
     .bias = true,
     .residual = true,
     .gated = true,
     .activation = GemmActivation::kGeluTanh},
};

FusedValues values_of(const Step& step, const GemmShape& shape) {
  FusedValues values{
      .bias_type = step.bias_type, .activation = step.activation, .gated = step.gated};
  if (step.bias) {
    const auto bias = random_values<float>(step.gated ? 2 * shape.n : shape.n, 21);
    values.bias = step.bias_type == DType::kBF16  ? through<BFloat16>(bias)
                  : step.bias_type == DType::kF16 ? through<Float16>(bias)
                                                  : bias;
  }
  if (step.residual) values.residual = random_values<float>(shape.m * shape.n, 22);
  return values;
}

struct Cut {
  std::string name;
  GemmOptions options;
  std::int64_t parts = 1;
};

const std::vector<Cut> kCuts = {
    {"default tiles", {}},
    {"small tiles", {.tile_m = 5, .tile_n = 17, .num_blocks = 3}},
    {"split-K",
     {.tile_m = 8, .tile_n = 20, .tile_k = 8, .split = GemmSplit::kSplitK, .splits = 3},
     3},
    {"Stream-K",
     {.tile_m = 8, .tile_n = 20, .tile_k = 8, .split = GemmSplit::kStreamK, .num_blocks = 7},
     7},
};

template <class TA, class TB, class TC>
void all_steps_and_cuts_agree() {
  for (const BLayout layout : {BLayout::kKxN, BLayout::kNxK}) {
    for (const GemmShape& shape : {GemmShape{9, 33, 37, layout}, GemmShape{1, 1, 24, layout},
                                   GemmShape{17, 64, 48, layout}}) {
      for (const Step& step : kSteps) {
        const FusedValues fused = values_of(step, shape);
        const auto a = random_values<TA>(shape.m * shape.k, 1);
        const auto b = random_values<TB>(shape.k * shape.n * (step.gated ? 2 : 1), 2);
        for (const Cut& cut : kCuts) {
          GemmOptions options = cut.options;
          if (shape.m == 1 && options.split == GemmSplit::kStreamK) options.num_blocks = 2;
          SCOPED_TRACE(words(shape) + ", " + step.name + ", " + cut.name);
          expect_near_reference<TA, TB, TC>(
              shape, a, b, run_gemm_serially<TA, TB, TC>(shape, options, a, b, fused), cut.parts,
              fused);
        }
      }
    }
  }
}

TEST(GemmEpilogue, F32) {
  all_steps_and_cuts_agree<float, float, float>();
}
TEST(GemmEpilogue, F32WithBf16Result) {
  all_steps_and_cuts_agree<float, float, BFloat16>();
}
TEST(GemmEpilogue, F32TimesBf16) {
  all_steps_and_cuts_agree<float, BFloat16, float>();
}
TEST(GemmEpilogue, F32TimesF16) {
  all_steps_and_cuts_agree<float, Float16, float>();
}
TEST(GemmEpilogue, Bf16) {
  all_steps_and_cuts_agree<BFloat16, BFloat16, float>();
}
TEST(GemmEpilogue, Bf16WithBf16Result) {
  all_steps_and_cuts_agree<BFloat16, BFloat16, BFloat16>();
}

TEST(GemmEpilogue, BitsDoNotDependOnTilesOrderOrPersistence) {
  for (const BLayout layout : {BLayout::kKxN, BLayout::kNxK}) {
    const GemmShape shape{19, 45, 50, layout};
    const auto a = random_values<float>(shape.m * shape.k, 1);
    for (const Step& step : kSteps) {
      SCOPED_TRACE(step.name);
      const FusedValues fused = values_of(step, shape);
      const auto b = random_values<BFloat16>(shape.k * shape.n * (step.gated ? 2 : 1), 2);
      const auto run = [&](const GemmOptions& options) {
        return run_gemm_serially<float, BFloat16, float>(shape, options, a, b, fused);
      };
      const std::vector<float> expected = run({});
      for (const GemmOptions& options : std::vector<GemmOptions>{
               {.tile_m = 1, .tile_n = 7},
               {.tile_m = 4, .tile_n = 16, .num_blocks = 2, .order = TileOrder::rotation(5)},
               {.tile_m = 6, .tile_n = 45, .tile_k = 8, .wait_k = 24, .prefetch_k = 50}}) {
        EXPECT_EQ(run(options), expected);
      }
    }
  }
}

TEST(GemmEpilogue, BitsDoNotDependOnWhoArrivesLast) {
  const GemmShape shape{19, 45, 50, BLayout::kNxK};
  const auto a = random_values<float>(shape.m * shape.k, 1);
  for (const Step& step : kSteps) {
    SCOPED_TRACE(step.name);
    const FusedValues fused = values_of(step, shape);
    const auto b = random_values<float>(shape.k * shape.n * (step.gated ? 2 : 1), 2);
    GemmOptions options{
        .tile_m = 8, .tile_n = 20, .tile_k = 8, .split = GemmSplit::kStreamK, .num_blocks = 7};
    const auto expected = run_gemm_serially<float, float, float>(shape, options, a, b, fused);
    options.order = TileOrder::table({6, 5, 4, 3, 2, 1, 0});
    EXPECT_EQ((run_gemm_serially<float, float, float>(shape, options, a, b, fused)), expected);
  }
}

TEST(GemmEpilogue, ActivationsHoldForLargeSumsAndKeepNaN) {
  // K = 1 and a = 1: the activation of b itself.
  const std::vector<float> x = {0.0F,   -0.0F, 1e-20F, 0.5F,   -0.5F,   4.0F,    -4.0F,   20.0F,
                                -20.0F, 87.0F, -87.0F, -88.5F, -103.0F, -104.5F, -1000.F, 1000.0F,
                                -1e30F, 1e12F, -3e38F, 1e-38F, -6.0F,   6.0F,    3.0F,    -3.0F};
  const GemmShape shape{1, static_cast<std::int64_t>(x.size()), 1};
  const std::vector<float> one = {1.0F};
  for (const GemmActivation activation : {GemmActivation::kSilu, GemmActivation::kGeluTanh}) {
    const FusedValues fused{.activation = activation};
    const auto y = run_gemm_serially<float, float, float>(shape, {}, one, x, fused);
    for (std::size_t i = 0; i < x.size(); ++i) {
      // x^3 of the gelu overflows beyond 1e12: its limits are 0 and x.
      SCOPED_TRACE(std::string(name_of(activation)) + " of " + std::to_string(x[i]));
      EXPECT_FALSE(std::isnan(y[i]));
      if (std::fabs(x[i]) > 1e12F) {
        EXPECT_EQ(y[i], x[i] < 0 ? 0.0F : x[i]);
      }
    }
    expect_near_reference<float, float, float>(shape, one, x, y, 1, fused);
    const std::vector<float> nan = {std::nanf("")};
    EXPECT_TRUE(
        std::isnan((run_gemm_serially<float, float, float>({1, 1, 1}, {}, one, nan, fused))[0]));
  }
}

}  // namespace
}  // namespace tileweave

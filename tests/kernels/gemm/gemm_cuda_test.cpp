// GEMMs on a GPU: the same cases as on the emulated device, against the same bounds.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/gemm/gemm_chain.h"

namespace tileweave {
namespace {

std::unique_ptr<Device> open() {
  auto device = open_cuda_device();
  add_gemm(*device);
  return device;
}

template <class T, class C>
void expect_near_reference(Device& device, const GemmShape& shape, const GemmOptions& given) {
  GemmOptions options = given;
  options.b_layout = shape.b_layout;
  const bool k_first = shape.b_layout == BLayout::kKxN;
  Plan plan;
  const TensorId a = plan.tensor({.name = "A",
                                  .shape = {shape.m, shape.k},
                                  .dtype = kDTypeOf<T>,
                                  .kind = TensorKind::kConstant});
  const TensorId b =
      plan.tensor({.name = "B",
                   .shape = k_first ? Shape{shape.k, shape.n} : Shape{shape.n, shape.k},
                   .dtype = kDTypeOf<T>,
                   .kind = TensorKind::kConstant});
  const TensorId c =
      plan.tensor({.name = "C", .shape = {shape.m, shape.n}, .dtype = kDTypeOf<C>, .output = true});
  plan.add(gemm(plan.tensors(), options, a, b, c));
  const auto a_values = random_values<T>(shape.m * shape.k, 1);
  const auto b_values = random_values<T>(shape.k * shape.n, 2);
  Program program(device, plan);
  program.write(a, a_values);
  program.write(b, b_values);
  program.run();
  program.synchronize();
  const std::vector<C> result = program.read<C>(c);
  const GemmReference exact = gemm_reference<T>(shape, a_values, b_values);
  for (std::size_t i = 0; i < result.size(); ++i) {
    ASSERT_LE(std::fabs(to_float(result[i]) - exact.c[i]),
              gemm_error_bound(exact.c[i], exact.magnitudes[i], shape.k, 4, kDTypeOf<C>))
        << "element " << i;
  }
}

template <class T, class C>
void all_shapes_agree() {
  const auto device = open();
  for (const GemmShape& shape : std::vector<GemmShape>{{1, 1, 1},
                                                       {1, 67, 131},
                                                       {64, 64, 32},
                                                       {65, 63, 33},
                                                       {17, 1, 97},
                                                       {97, 131, 64},
                                                       {130, 200, 129}}) {
    for (const BLayout layout : {BLayout::kKxN, BLayout::kNxK}) {
      for (const GemmOptions& options :
           std::vector<GemmOptions>{{},
                                    {.tile_m = 13, .tile_n = 200, .tile_k = 7, .prefetch_k = 16},
                                    {.tile_m = 40,
                                    .tile_n = 24,
                                    .tile_k = 1,
                                    .split = GemmSplit::kStreamK,
                                    .num_blocks = 1}}) {
        SCOPED_TRACE(std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " +
                     std::to_string(shape.k) + ", tile_m " + std::to_string(options.tile_m));
        GemmShape with_layout = shape;
        with_layout.b_layout = layout;
        expect_near_reference<T, C>(*device, with_layout, options);
      }
    }
  }
}

TEST(GemmCuda, F32AgreesWithTheReference) {
  all_shapes_agree<float, float>();
}
TEST(GemmCuda, F32WithBf16ResultAgreesWithTheReference) {
  all_shapes_agree<float, BFloat16>();
}
TEST(GemmCuda, Bf16AgreesWithTheReference) {
  all_shapes_agree<BFloat16, float>();
}
TEST(GemmCuda, Bf16WithBf16ResultAgreesWithTheReference) {
  all_shapes_agree<BFloat16, BFloat16>();
}

TEST(GemmCuda, WholeKGivesTheSameBitsForEveryTilingModeAndSubmission) {
  const auto device = open();
  const ChainSizes sizes{.m = 300, .k = 170, .n = 331, .p = 267};
  const ChainResult expected =
      run_chain(*device, sizes, {.name = "untiled", .y_tiles = {}}, {.mode = Mode::kSerial});
  EXPECT_LE(worst_share_of_bound(sizes, expected, 1), 1);
  for (ChainCase c : whole_k_cases()) {
    c.y_tiles = {std::min(c.y_tiles[0], sizes.m), std::min(c.y_tiles[1], sizes.n)};
    if (c.y_tiles[1] == 131) c.y_tiles[1] = sizes.n;
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
        SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap") +
                     (submit == Submit::kEager ? ", eager" : ", graph"));
        EXPECT_TRUE(run_chain(*device, sizes, c, {.mode = mode, .submit = submit},
                              StartRule::kWaitAll, 5) == expected);
      }
    }
  }
}

TEST(GemmCuda, SplitKAndStreamKAreRightAndGiveTheSameBitsInBothModes) {
  const auto device = open();
  const ChainSizes sizes{.m = 300, .k = 170, .n = 331, .p = 267};
  for (ChainCase c : split_k_cases()) {
    SCOPED_TRACE(c.name);
    c.y_tiles[1] = c.y_tiles[1] == 131 ? sizes.n : c.y_tiles[1];
    const ChainResult serial = run_chain(*device, sizes, c, {.mode = Mode::kSerial});
    EXPECT_LE(worst_share_of_bound(sizes, serial, 4), 1);
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(run_chain(*device, sizes, c, {}) == serial) << "attempt " << i;
    }
  }
}

TEST(GemmCuda, NamesTheKernelOfAnEpilogueThatItLacks) {
  const auto device = open();
  Plan plan;
  const TensorId a = plan.tensor({.name = "A", .shape = {8, 8}, .kind = TensorKind::kConstant});
  const TensorId b = plan.tensor({.name = "B", .shape = {8, 8}, .kind = TensorKind::kConstant});
  const TensorId c = plan.tensor({.name = "C", .shape = {8, 8}, .output = true});
  plan.add(gemm(plan.tensors(), {.epilogue = {.activation = GemmActivation::kSilu}}, a, b, c));
  try {
    const Program program(*device, plan);
    FAIL() << "the CUDA device has no epilogues";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("`gemm.f32.f32.f32.epilogue`"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tileweave

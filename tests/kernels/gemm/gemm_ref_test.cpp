#include "tileweave/kernels/gemm/gemm_ref.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

TEST(GemmReference, MultipliesByHand) {
  const std::vector<float> a{1, 2, 3, -4, 5, 6};    // (2, 3)
  const std::vector<float> b{1, 0, -1, 2, 0.5, 1};  // (3, 2)
  const GemmReference result = gemm_reference<float>({2, 2, 3}, a, b);
  EXPECT_EQ(result.c, (std::vector<double>{0.5, 7, -6, 16}));
  EXPECT_EQ(result.magnitudes, (std::vector<double>{4.5, 7, 12, 16}));
}

TEST(GemmReference, ReadsWeightsStoredByOutputRow) {
  const std::vector<float> a{1, 2, 3, -4, 5, 6};
  const std::vector<float> transposed{1, -1, 0.5, 0, 2, 1};  // (2, 3)
  const GemmReference result = gemm_reference<float>({2, 2, 3, BLayout::kNxK}, a, transposed);
  EXPECT_EQ(result.c, (std::vector<double>{0.5, 7, -6, 16}));
}

TEST(GemmReference, AgreesWithSumsInAnyOrderWithinItsBound) {
  const std::int64_t k = 1000;
  const auto a = random_values<float>(k, 3);
  const auto b = random_values<float>(k, 4);
  const GemmReference exact = gemm_reference<float>({1, 1, k}, a, b);
  float backwards = 0;
  for (std::size_t i = a.size(); i-- > 0;) backwards += a[i] * b[i];
  const double bound = gemm_error_bound(exact.c[0], exact.magnitudes[0], k, 1, DType::kF32);
  EXPECT_LE(std::fabs(backwards - exact.c[0]), bound);
  EXPECT_GT(std::fabs(a[17] * b[17]), bound) << "a missing product must be seen";
}

TEST(GemmReference, AppliesBiasGateActivationAndResidualByHand) {
  const std::vector<float> a{1, 2};
  const std::vector<float> b{1, 3, 0.5F, 1};  // (2, 2): gate 1, factor 3, then 0.5, 1
  const std::vector<float> bias{-1, 5};
  const std::vector<float> residual{10};
  // gate 1 + 1 - 1 = 1, factor 3 + 2 + 5 = 10.
  GemmEpilogueValues epilogue{.bias = bias, .residual = residual, .gated = true};
  const auto c = [&] {
    return gemm_fused_reference<float, float>({1, 1, 2}, epilogue, a, b, 1, DType::kF32).c[0];
  };
  EXPECT_DOUBLE_EQ(c(), 20);
  epilogue.activation = GemmActivation::kSilu;
  EXPECT_DOUBLE_EQ(c(), 10 / (1 + std::exp(-1.0)) + 10);
  epilogue.activation = GemmActivation::kGeluTanh;
  EXPECT_DOUBLE_EQ(c(), 5 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * 1.044715)) + 10);
}

TEST(GemmReference, BoundsSeeAWrongActivationAndAMissingTerm) {
  const std::int64_t k = 300;
  const auto a = random_values<float>(k, 3);
  const auto b = random_values<float>(k, 4);
  const std::vector<float> residual{1e-2F};
  const auto reference = [&](const GemmEpilogueValues& epilogue) {
    return gemm_fused_reference<float, float>({1, 1, k}, epilogue, a, b, 1, DType::kF32);
  };
  const auto silu = reference({.activation = GemmActivation::kSilu});
  const auto gelu = reference({.activation = GemmActivation::kGeluTanh});
  EXPECT_GT(std::fabs(silu.c[0] - gelu.c[0]), silu.bounds[0] + gelu.bounds[0]);
  const auto with = reference({.residual = residual, .activation = GemmActivation::kSilu});
  EXPECT_GT(std::fabs(with.c[0] - silu.c[0]), with.bounds[0]);
}

TEST(GemmReference, RefusesSpansOfAnotherLength) {
  const std::vector<float> a(5);
  const std::vector<float> b(6);
  EXPECT_THROW(gemm_reference<float>({2, 2, 3}, a, b), Error);
}

}  // namespace
}  // namespace tileweave

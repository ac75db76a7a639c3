// RMSNorm between two GEMMs on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/norm/norm_chain.h"

namespace tileweave {
namespace {

TEST(RmsNormCuda, BetweenGemmsGivesTheSameBitsForEveryTilingModeAndSubmission) {
  const auto device = open_cuda_device();
  add_gemm(*device);
  add_norm(*device);
  const NormResult expected = run_norm_chain(*device, {.name = "untiled"}, {.mode = Mode::kSerial});
  EXPECT_LE(worst_share_of_bound(expected), 1);
  for (const NormCase& c : norm_cases()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
        SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap") +
                     (submit == Submit::kEager ? ", eager" : ", graph"));
        EXPECT_TRUE(run_norm_chain(*device, c, {.mode = mode, .submit = submit}) == expected);
      }
    }
  }
}

template <class X, class W, class Y>
void expect_near_reference(Device& device, std::int64_t rows, std::int64_t cols) {
  Plan plan;
  const TensorId x = plan.tensor(
      {.name = "x", .shape = {rows, cols}, .dtype = kDTypeOf<X>, .kind = TensorKind::kConstant});
  const TensorId w = plan.tensor(
      {.name = "w", .shape = {cols}, .dtype = kDTypeOf<W>, .kind = TensorKind::kConstant});
  const TensorId y =
      plan.tensor({.name = "y", .shape = {rows, cols}, .dtype = kDTypeOf<Y>, .output = true});
  plan.add(rms_norm(plan.tensors(), {}, x, w, y));
  const auto x_values = random_values<X>(rows * cols, 1);
  const auto w_values = random_values<W>(cols, 2);
  Program program(device, plan);
  program.write(x, x_values);
  program.write(w, w_values);
  program.run();
  program.synchronize();
  const std::vector<Y> result = program.read<Y>(y);
  const std::vector<double> exact = rms_norm_reference<X, W>(x_values, w_values, 1e-5F);
  for (std::size_t i = 0; i < result.size(); ++i) {
    ASSERT_LE(std::fabs(to_float(result[i]) - exact[i]),
              rms_norm_error_bound(exact[i], cols, kDTypeOf<Y>))
        << "element " << i << " of " << rows << " x " << cols;
  }
}

TEST(RmsNormCuda, EveryCombinationOfTypesAgreesWithTheReference) {
  const auto device = open_cuda_device();
  add_norm(*device);
  // Around a thread's eight elements, a chunk of the block (2048) and what registers hold (8192).
  for (const std::int64_t cols : {1, 31, 32, 131, 1024, 2056, 8192, 8200}) {
    for (const std::int64_t rows : {1, 8, 9}) {
      expect_near_reference<float, float, float>(*device, rows, cols);
      expect_near_reference<float, float, BFloat16>(*device, rows, cols);
      expect_near_reference<float, BFloat16, float>(*device, rows, cols);
      expect_near_reference<float, BFloat16, BFloat16>(*device, rows, cols);
      expect_near_reference<BFloat16, float, float>(*device, rows, cols);
      expect_near_reference<BFloat16, float, BFloat16>(*device, rows, cols);
      expect_near_reference<BFloat16, BFloat16, float>(*device, rows, cols);
      expect_near_reference<BFloat16, BFloat16, BFloat16>(*device, rows, cols);
    }
  }
}

std::vector<BFloat16> normalised(Device& device, const std::vector<float>& values,
                                 const std::vector<BFloat16>& weights,
                                 const RmsNormOptions& options = {}) {
  const auto cols = static_cast<std::int64_t>(weights.size());
  const std::int64_t rows = static_cast<std::int64_t>(values.size()) / cols;
  Plan plan;
  const TensorId x =
      plan.tensor({.name = "x", .shape = {rows, cols}, .kind = TensorKind::kConstant});
  const TensorId w = plan.tensor(
      {.name = "w", .shape = {cols}, .dtype = DType::kBF16, .kind = TensorKind::kConstant});
  const TensorId y =
      plan.tensor({.name = "y", .shape = {rows, cols}, .dtype = DType::kBF16, .output = true});
  plan.add(rms_norm(plan.tensors(), options, x, w, y));
  Program program(device, plan);
  program.write(x, values);
  program.write(w, weights);
  program.run();
  program.synchronize();
  return program.read<BFloat16>(y);
}

TEST(RmsNormCuda, BitsOfARowDependOnTheRowAlone) {
  const auto device = open_cuda_device();
  add_norm(*device);
  for (const std::int64_t cols : {67, 2048, 5120, 9000}) {
    auto x = random_values<float>(16 * cols, 24);
    std::fill_n(x.begin() + 3 * cols, cols, std::numeric_limits<float>::quiet_NaN());
    const auto weight = random_values<BFloat16>(cols, 26);
    const auto expect_row = [&](const std::vector<BFloat16>& all, std::int64_t row,
                                const std::vector<BFloat16>& alone, const std::string& what) {
      for (std::int64_t j = 0; j < cols; ++j) {
        ASSERT_EQ(all[static_cast<std::size_t>(row * cols + j)].bits,
                  alone[static_cast<std::size_t>(j)].bits)
            << what << ", row " << row << " of 16, column " << j << " of " << cols;
      }
    };
    for (const std::int64_t row : {0, 2, 4, 15}) {
      const auto alone =
          normalised(*device, {x.begin() + row * cols, x.begin() + (row + 1) * cols}, weight);
      for (const RmsNormOptions& options :
           {RmsNormOptions{}, RmsNormOptions{.tile_m = 1}, RmsNormOptions{.tile_m = 16},
            RmsNormOptions{.tile_m = 3, .num_blocks = 2}}) {
        expect_row(normalised(*device, x, weight, options), row, alone,
                   "tile_m " + std::to_string(options.tile_m));
      }
    }
  }
}

}  // namespace
}  // namespace tileweave

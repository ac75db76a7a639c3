// The reference by hand, and the CPU form's arithmetic and declared boxes without a device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/serial_lane.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/norm/rms_norm_args.h"
#include "tileweave/kernels/norm/rms_norm_ref.h"
#include "tileweave/plan/tensor.h"

namespace tileweave {
namespace {

template <class X, class W, class Y>
std::vector<Y> normalise(const std::vector<X>& x, const std::vector<W>& weight,
                         const RmsNormOptions& options) {
  const auto cols = static_cast<std::int64_t>(weight.size());
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / cols;
  TensorTable tensors;
  const TensorId tx = tensors.add({.name = "x", .shape = {rows, cols}, .dtype = kDTypeOf<X>});
  const TensorId tw = tensors.add(
      {.name = "w", .shape = {cols}, .dtype = kDTypeOf<W>, .kind = TensorKind::kConstant});
  const TensorId ty = tensors.add({.name = "y", .shape = {rows, cols}, .dtype = kDTypeOf<Y>});
  const NodeSpec node = rms_norm(tensors, options, tx, tw, ty);
  KernelLibrary kernels;
  add_norm_cpu(kernels);
  std::vector<X> x_copy = x;
  std::vector<W> w_copy = weight;
  std::vector<Y> y(x.size());
  const SerialLane lane = run_serially<RmsNormOperands::kSlots>(
      node, tensors, kernels, {.operands = {x_copy.data(), w_copy.data(), y.data()}});
  EXPECT_EQ(lane.signals(), node.num_works);
  return y;
}

template <class X, class W, class Y>
void expect_near_reference() {
  for (const auto& [rows, cols] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {1, 67}, {9, 31}, {8, 32}, {7, 33}, {17, 131}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
    const auto x = random_values<X>(rows * cols, 11);
    const auto weight = random_values<W>(cols, 12);
    const std::vector<double> exact = rms_norm_reference<X, W>(x, weight, 1e-5F);
    const std::vector<Y> y = normalise<X, W, Y>(x, weight, {});
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_LE(std::fabs(to_float(y[i]) - exact[i]),
                rms_norm_error_bound(exact[i], cols, kDTypeOf<Y>))
          << "element " << i;
    }
  }
}

TEST(RmsNormReference, NormalisesByHand) {
  const std::vector<float> x{4, 0, 0, 0, 2, -2, 2, 2};  // both rows: mean of squares 4
  const std::vector<float> weight{1, 2, -1, 0.5};
  const std::vector<double> y = rms_norm_reference<float, float>(x, weight, 0);
  EXPECT_EQ(y, (std::vector<double>{2, 0, 0, 0, 1, -2, -1, 0.5}));
}

TEST(RmsNormSerial, EveryCombinationOfTypesAgreesWithTheReference) {
  expect_near_reference<float, float, float>();
  expect_near_reference<float, float, BFloat16>();
  expect_near_reference<float, BFloat16, float>();
  expect_near_reference<float, BFloat16, BFloat16>();
  expect_near_reference<BFloat16, float, float>();
  expect_near_reference<BFloat16, float, BFloat16>();
  expect_near_reference<BFloat16, BFloat16, float>();
  expect_near_reference<BFloat16, BFloat16, BFloat16>();
  expect_near_reference<float, Float16, float>();
}

TEST(RmsNormSerial, BitsOfARowDoNotDependOnTilesOrderOrTheRowsAroundIt) {
  const auto x = random_values<float>(13 * 67, 13);
  const auto weight = random_values<float>(67, 14);
  const auto expected = normalise<float, float, float>(x, weight, {});
  for (const RmsNormOptions& options :
       {RmsNormOptions{.tile_m = 1}, RmsNormOptions{.tile_m = 13},
        RmsNormOptions{.tile_m = 4, .num_blocks = 2},
        RmsNormOptions{.tile_m = 2, .order = TileOrder::rotation(3)}}) {
    EXPECT_EQ((normalise<float, float, float>(x, weight, options)), expected);
  }
  const std::vector<float> last_row(x.end() - 67, x.end());
  const auto alone = normalise<float, float, float>(last_row, weight, {});
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), expected.end() - 67));
}

TEST(RmsNormSerial, ARowOfNaNLeavesTheRowsAfterItAlone) {
  auto x = random_values<float>(5 * 19, 15);
  const auto weight = random_values<float>(19, 16);
  const auto expected = normalise<float, float, float>(x, weight, {});
  for (std::size_t j = 19; j < 38; ++j) x[j] = std::nanf("");
  const auto result = normalise<float, float, float>(x, weight, {});
  EXPECT_TRUE(std::equal(result.begin(), result.begin() + 19, expected.begin()));
  EXPECT_TRUE(std::equal(result.begin() + 38, result.end(), expected.begin() + 38));
}

TEST(RmsNormNode, RefusesWhatDoesNotFitInOneSentence) {
  TensorTable tensors;
  const TensorId x = tensors.add({.name = "x", .shape = {4, 8}});
  const TensorId y = tensors.add({.name = "y", .shape = {4, 8}});
  const TensorId w = tensors.add({.name = "w", .shape = {8}, .kind = TensorKind::kConstant});
  const TensorId produced = tensors.add({.name = "v", .shape = {8}});
  const TensorId half =
      tensors.add({.name = "h", .shape = {8}, .dtype = DType::kF16, .kind = TensorKind::kConstant});
  const TensorId bf16 = tensors.add({.name = "b", .shape = {4, 8}, .dtype = DType::kBF16});
  const auto sentence = [&](const RmsNormOptions& options, TensorId weight, TensorId result) {
    try {
      rms_norm(tensors, options, x, weight, result);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(sentence({}, w, y), "no error");
  EXPECT_EQ(sentence({}, y, y), "make rms_norm node `rms_norm`: `y` must be (8), got (4, 8)");
  EXPECT_EQ(sentence({}, produced, y),
            "make rms_norm node `rms_norm`: the weight `v` must be constant, got value");
  EXPECT_EQ(sentence({}, half, y), "no error");
  EXPECT_EQ(sentence({}, half, bf16),
            "make rms_norm node `rms_norm`: with the f16 weight `h` operand and result must be "
            "f32, got f32 and bf16");
  EXPECT_EQ(sentence({.name = "n", .tile_m = 0}, w, y),
            "make rms_norm node `n`: tile_m must be at least 1, got 0");
  EXPECT_EQ(sentence({.eps = -1}, w, y),
            "make rms_norm node `rms_norm`: eps must be finite and not negative, got -1.000000");
}

}  // namespace
}  // namespace tileweave

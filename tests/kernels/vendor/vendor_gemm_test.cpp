// The vendor GEMM on the emulated device, and what its node function refuses.
#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/vendor/vendor_case.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

TEST(VendorGemm, AgreesWithPlainSums) {
  const auto device = open_cpu_device();
  add_vendor_gemm(*device);
  for (const SkinnyCase& c : vendor_cases()) {
    SCOPED_TRACE(c.text());
    const SkinnyData data = vendor_data(c);
    expect_right(c, data, run_vendor(*device, c, data));
  }
}

TEST(VendorGemm, TakesABiasOfEitherType) {
  const auto device = open_cpu_device();
  add_vendor_gemm(*device);
  const SkinnyCase c{.m = 9, .n = 20, .k = 24, .residual = true, .bias = true};
  const SkinnyData data = vendor_data(c);
  const std::vector<float> with_bf16 = run_vendor(*device, c, data);
  EXPECT_TRUE((run_vendor_as<float, float>(*device, c, data, {}, 0) == with_bf16));
}

TEST(VendorGemm, TouchesNoMoreThanItDeclares) {
  const auto device = open_cpu_device({.check_views = CheckViews::kOn});
  add_vendor_gemm(*device);
  for (const DType type : {DType::kF32, DType::kBF16}) {
    const SkinnyCase c{
        .m = 3, .n = 5, .k = 7, .residual = true, .bias = type == DType::kF32, .y_type = type};
    const SkinnyData data = vendor_data(c);
    expect_right(c, data, run_vendor(*device, c, data));
  }
}

TEST(VendorGemm, BetweenTileKernelsGivesTheSameBitsInAnyAdmissionOrder) {
  const auto serial_device = open_cpu_device();
  add_norm(*serial_device);
  add_vendor_gemm(*serial_device);
  const std::vector<float> serial =
      run_vendor_chain(*serial_device, {.mode = Mode::kSerial}, 1, {});
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto device = open_cpu_device(
        {.way = CpuWay::kExplore, .num_sms = 7, .seed = seed, .delay_probability = 0.3});
    add_norm(*device);
    add_vendor_gemm(*device);
    EXPECT_TRUE(run_vendor_chain(*device, {}, 2, {.kind = EdgeKind::kTile}) == serial)
        << "seed " << seed;
  }
}

struct Refused {
  DType x = DType::kBF16, w = DType::kBF16, y = DType::kF32, residual = DType::kF32,
        bias = DType::kF32;
  Shape x_shape = {3, 8}, w_shape = {5, 8}, y_shape = {3, 5}, residual_shape = {3, 5},
        bias_shape = {5};
  TensorKind w_kind = TensorKind::kConstant, y_kind = TensorKind::kValue;
};

std::string said_of(const Refused& r) {
  Plan plan;
  const auto tensor = [&](const char* name, const Shape& shape, DType dtype, TensorKind kind) {
    return plan.tensor({.name = name, .shape = shape, .dtype = dtype, .kind = kind});
  };
  const VendorGemmTensors t{
      .x = tensor("x", r.x_shape, r.x, TensorKind::kConstant),
      .w = tensor("w", r.w_shape, r.w, r.w_kind),
      .y = tensor("y", r.y_shape, r.y, r.y_kind),
      .residual = tensor("residual", r.residual_shape, r.residual, TensorKind::kConstant),
      .bias = tensor("bias", r.bias_shape, r.bias, TensorKind::kConstant)};
  try {
    plan.add(vendor_gemm(plan.tensors(), {.name = "n"}, t));
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(VendorGemm, RefusesWhatDoesNotFitByName) {
  EXPECT_EQ(said_of({}), "nothing");
  EXPECT_EQ(said_of({.bias = DType::kBF16}), "nothing");
  const auto expect = [](const Refused& r, const char* name) {
    const std::string said = said_of(r);
    EXPECT_NE(said.find("make vendor_gemm node `n`"), std::string::npos) << said;
    EXPECT_NE(said.find(name), std::string::npos) << said;
  };
  expect({.x = DType::kF32}, "`x`");
  expect({.w = DType::kF32}, "`w`");
  expect({.y = DType::kF16}, "`y`");
  expect({.residual = DType::kBF16}, "`residual`");
  expect({.bias = DType::kF16}, "`bias`");
  expect({.y = DType::kBF16, .residual = DType::kBF16}, "`y` must be f32 where there is a bias");
  expect({.x_shape = {3, 9}}, "`x`");
  expect({.x_shape = {24}}, "`x`");
  expect({.w_shape = {5, 9}}, "`x`");
  expect({.y_shape = {3, 6}}, "`y`");
  expect({.residual_shape = {5, 3}}, "`residual`");
  expect({.bias_shape = {3}}, "`bias`");
  expect({.w_kind = TensorKind::kValue}, "`w`");
  expect({.y_kind = TensorKind::kConstant}, "`y`");
}

TEST(VendorGemm, IsNotIntegratedAndItsScratchIsTheWorkspace) {
  Plan plan;
  const TensorId x = plan.tensor(
      {.name = "x", .shape = {4, 8}, .dtype = DType::kBF16, .kind = TensorKind::kConstant});
  const TensorId w = plan.tensor(
      {.name = "w", .shape = {5, 8}, .dtype = DType::kBF16, .kind = TensorKind::kConstant});
  const TensorId y = plan.tensor({.name = "y", .shape = {4, 5}, .output = true});
  const NodeSpec node =
      vendor_gemm(plan.tensors(), {.workspace_bytes = 4096}, {.x = x, .w = w, .y = y});
  EXPECT_FALSE(node.integrated);
  EXPECT_EQ(node.scratch_bytes, 4096U);
}

}  // namespace
}  // namespace tileweave

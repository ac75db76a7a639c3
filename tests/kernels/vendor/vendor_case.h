// One vendor GEMM held against plain sums, and one between tile kernels; on either device.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/kernels/gemm/skinny_case.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/vendor/vendor_gemm.h"

namespace tileweave {

/// Values of a type in a device's memory, `offset` bytes behind an aligned address.
template <class T>
class OnDevice {
 public:
  OnDevice(Device& device, const std::vector<T>& values, std::size_t offset = 0)
      : device_(device),
        memory_(device.allocate(values.size() * sizeof(T) + offset)),
        address_(static_cast<std::byte*>(memory_) + offset) {
    device.upload(address_, values.data(), values.size() * sizeof(T));
  }
  ~OnDevice() { device_.release(memory_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  void* address() const { return address_; }

 private:
  Device& device_;
  void* memory_;
  std::byte* address_;
};

template <class T>
std::vector<T> as(const std::vector<float>& values) {
  std::vector<T> to;
  for (const float value : values) to.push_back(from_float<T>(value));
  return to;
}

/// The residual has the type Y of the result. Operands but the bias lie `offset` bytes behind an
/// aligned address.
template <class Y, class Bias>
std::vector<float> run_vendor_as(Device& device, const SkinnyCase& c, const SkinnyData& data,
                                 const RunOptions& run, std::size_t offset) {
  std::vector<float> bias_values;
  for (const BFloat16 value : data.bias) bias_values.push_back(to_float(value));
  const OnDevice<BFloat16> x(device, as<BFloat16>(data.x), offset);
  const OnDevice<BFloat16> w(device, data.w, offset);
  const OnDevice<Bias> bias(device, as<Bias>(bias_values));
  const OnDevice<Y> residual(device, as<Y>(data.residual), offset);
  const OnDevice<Y> y(device, std::vector<Y>(data.residual.size()), offset);
  Plan plan;
  const auto constant = [&](const char* name, const Shape& shape, DType dtype, void* address) {
    return plan.tensor({.name = name,
                        .shape = shape,
                        .dtype = dtype,
                        .kind = TensorKind::kConstant,
                        .address = address});
  };
  VendorGemmTensors t;
  t.x = constant("x", {c.m, c.k}, DType::kBF16, x.address());
  t.w = constant("w", {c.n, c.k}, DType::kBF16, w.address());
  if (c.bias) t.bias = constant("bias", {c.n}, kDTypeOf<Bias>, bias.address());
  if (c.residual) t.residual = constant("residual", {c.m, c.n}, c.y_type, residual.address());
  t.y = plan.tensor({.name = "y",
                     .shape = {c.m, c.n},
                     .dtype = c.y_type,
                     .output = true,
                     .address = y.address()});
  plan.add(vendor_gemm(plan.tensors(), {}, t));
  Program program(device, plan, run);
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  std::vector<float> got;
  for (const Y value : program.read<Y>(t.y)) got.push_back(to_float(value));
  return got;
}

/// A bias is bf16.
inline std::vector<float> run_vendor(Device& device, const SkinnyCase& c, const SkinnyData& data,
                                     const RunOptions& run = {}, std::size_t offset = 0) {
  return c.y_type == DType::kBF16 ? run_vendor_as<BFloat16, BFloat16>(device, c, data, run, offset)
                                  : run_vendor_as<float, BFloat16>(device, c, data, run, offset);
}

/// Operands of a case whose residual has the type of its result.
inline SkinnyData vendor_data(const SkinnyCase& c) {
  SkinnyData data(c);
  if (c.y_type == DType::kBF16) {
    for (float& value : data.residual) value = to_float(to_bfloat16(value));
  }
  return data;
}

/// Sizes 1, primes, multiples of 8 and of larger tiles, each ± 1.
inline std::vector<SkinnyCase> vendor_cases() {
  std::vector<SkinnyCase> cases;
  for (const std::int64_t m : {1, 2, 7, 64, 127, 128, 129}) {
    cases.push_back({.m = m, .n = 131, .k = 200, .residual = true});
    cases.push_back({.m = m, .n = 48, .k = 77, .bias = true});
    cases.push_back({.m = m, .n = 56, .k = 91, .y_type = DType::kBF16});
    cases.push_back({.m = m, .n = 64, .k = 64, .residual = true, .bias = true});
  }
  for (const std::int64_t n : {1, 2, 15, 16, 17, 63, 64, 65, 128}) {
    cases.push_back({.m = 5, .n = n, .k = 64, .residual = true, .bias = true});
    cases.push_back({.m = 5, .n = n, .k = 72, .residual = true, .y_type = DType::kBF16});
  }
  for (const std::int64_t k : {1, 2, 7, 8, 15, 16, 17, 127, 128, 129, 1023, 1024, 2048}) {
    cases.push_back({.m = 3, .n = 35, .k = k});
    cases.push_back({.m = 70, .n = 40, .k = k, .bias = true});
  }
  return cases;
}

/// norm (tiles of rows) -> product -> norm (tiles of rows); rows of hidden, then of inner elements.
inline std::vector<float> run_vendor_chain(Device& device, const RunOptions& run,
                                           std::int32_t num_streams, const EdgePolicy& edge,
                                           int num_runs = 3) {
  constexpr std::int64_t kRows = 37, kHidden = 96, kInner = 136;
  Plan plan({.num_streams = num_streams, .edge = edge});
  const auto constant = [&](const char* name, const Shape& shape, DType dtype) {
    return plan.tensor(
        {.name = name, .shape = shape, .dtype = dtype, .kind = TensorKind::kConstant});
  };
  const TensorId x = constant("x", {kRows, kHidden}, DType::kF32);
  const TensorId first_weight = constant("first weight", {kHidden}, DType::kBF16);
  const TensorId w = constant("w", {kInner, kHidden}, DType::kBF16);
  const TensorId second_weight = constant("second weight", {kInner}, DType::kBF16);
  const TensorId normal = plan.tensor(
      {.name = "normal", .shape = {kRows, kHidden}, .dtype = DType::kBF16, .tiles = {8, kHidden}});
  const TensorId product =
      plan.tensor({.name = "product", .shape = {kRows, kInner}, .tiles = {8, kInner}});
  const TensorId y = plan.tensor({.name = "y", .shape = {kRows, kInner}, .output = true});
  plan.add(rms_norm(plan.tensors(), {.name = "first"}, x, first_weight, normal));
  plan.add(vendor_gemm(plan.tensors(), {.name = "product"}, {.x = normal, .w = w, .y = product}));
  plan.add(rms_norm(plan.tensors(), {.name = "second"}, product, second_weight, y));
  Program program(device, plan, run);
  program.write(x, random_values<float>(kRows * kHidden, 1));
  program.write(first_weight, random_values<BFloat16>(kHidden, 2));
  program.write(w, random_values<BFloat16>(kInner * kHidden, 3));
  program.write(second_weight, random_values<BFloat16>(kInner, 4));
  for (int i = 0; i < num_runs; ++i) program.run();
  program.synchronize();
  return program.read<float>(y);
}

}  // namespace tileweave

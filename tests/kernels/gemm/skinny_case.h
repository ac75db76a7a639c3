// One skinny GEMM held against plain double-precision sums, on either device.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/runtime/program.h"

namespace tileweave {

struct SkinnyCase {
  std::int64_t m = 1, n = 64, k = 512;
  bool norm = false, residual = false, bias = false;
  DType y_type = DType::kF32;
  SkinnyGemmOptions options = {};

  std::string text() const {
    return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
           (norm ? ", norm" : "") + (residual ? ", residual" : "") + (bias ? ", bias" : "") +
           (options.gated ? ", gated" : "") + (y_type == DType::kBF16 ? ", bf16" : "") + ", " +
           std::to_string(options.strips_per_work) + " strips, split " +
           std::to_string(options.split_k) + ", ring " + std::to_string(options.stages) +
           " window " + std::to_string(options.window) + ", wait_k " +
           std::to_string(options.wait_k);
  }
  std::int64_t columns() const { return options.gated ? n / 2 : n; }
};

struct SkinnyData {
  std::vector<float> x;  // (m, k); bf16 values where there is no norm
  std::vector<BFloat16> w, norm_weight, bias;
  std::vector<float> residual;

  explicit SkinnyData(const SkinnyCase& c)
      : x(random_values<float>(c.m * c.k, 1)),
        w(random_values<BFloat16>(c.n * c.k, 2)),
        norm_weight(random_values<BFloat16>(c.k, 3)),
        bias(random_values<BFloat16>(c.n, 4)),
        residual(random_values<float>(c.m * c.columns(), 5)) {
    if (c.norm) return;
    for (float& value : x) value = to_float(to_bfloat16(value));
  }
};

inline std::vector<BFloat16> packed(const std::vector<BFloat16>& w, const SkinnyCase& c) {
  const PackedLayout layout{
      .n = c.n, .k = c.k, .order = c.options.gated ? StripOrder::kPaired : StripOrder::kRows};
  std::vector<BFloat16> to(static_cast<std::size_t>(layout.bytes()) / 2);
  pack_weights(w.data(), layout, to.data());
  return to;
}

/// Packed weights in the device's memory, released with the object.
class PackedOnDevice {
 public:
  PackedOnDevice(Device& device, const std::vector<BFloat16>& values)
      : device_(device), address_(device.allocate(values.size() * 2)) {
    device.upload(address_, values.data(), values.size() * 2);
  }
  ~PackedOnDevice() { device_.release(address_); }
  PackedOnDevice(const PackedOnDevice&) = delete;
  PackedOnDevice& operator=(const PackedOnDevice&) = delete;
  void* address() const { return address_; }

 private:
  Device& device_;
  void* address_;
};

/// The case's operands as tensors of a plan; a tensor that it does not have is kNoTensor.
struct ProductTensors {
  TensorId x = kNoTensor, w = kNoTensor, y = kNoTensor;
  TensorId norm_weight = kNoTensor, residual = kNoTensor, bias = kNoTensor;
};

/// Runs the node that `product(plan, tensors)` adds, twice.
template <class Product>
std::vector<float> run_product(Device& device, const SkinnyCase& c, const SkinnyData& data,
                               const RunOptions& run, const Product& product) {
  const PackedOnDevice w(device, packed(data.w, c));
  Plan plan;
  const auto constant = [&](const char* name, const Shape& shape, DType dtype, void* address) {
    return plan.tensor({.name = name,
                        .shape = shape,
                        .dtype = dtype,
                        .kind = TensorKind::kConstant,
                        .address = address});
  };
  ProductTensors t;
  t.x = constant("x", {c.m, c.k}, c.norm ? DType::kF32 : DType::kBF16, nullptr);
  t.w = constant("w", {c.n, c.k}, DType::kBF16, w.address());
  if (c.norm) t.norm_weight = constant("norm", {c.k}, DType::kBF16, nullptr);
  if (c.bias) t.bias = constant("bias", {c.n}, DType::kBF16, nullptr);
  if (c.residual) t.residual = constant("residual", {c.m, c.columns()}, DType::kF32, nullptr);
  t.y = plan.tensor({.name = "y",
                     .shape = {c.m, c.columns()},
                     .dtype = c.y_type,
                     .tiles = {c.m, c.columns()},
                     .output = true});
  product(plan, t);
  Program program(device, plan, run);
  if (c.norm) {
    program.write(t.x, data.x);
    program.write(t.norm_weight, data.norm_weight);
  } else {
    std::vector<BFloat16> x;
    for (const float value : data.x) x.push_back(to_bfloat16(value));
    program.write(t.x, x);
  }
  if (c.bias) program.write(t.bias, data.bias);
  if (c.residual) program.write(t.residual, data.residual);
  for (int i = 0; i < 2; ++i) program.run();
  program.synchronize();
  if (c.y_type == DType::kF32) return program.read<float>(t.y);
  std::vector<float> y;
  for (const BFloat16 value : program.read<BFloat16>(t.y)) y.push_back(to_float(value));
  return y;
}

inline std::vector<float> run_skinny(Device& device, const SkinnyCase& c, const SkinnyData& data,
                                     const RunOptions& run = {}) {
  return run_product(device, c, data, run, [&](Plan& plan, const ProductTensors& t) {
    plan.add(skinny_gemm(plan.tensors(), c.options,
                         {.x = t.x,
                          .w = t.w,
                          .y = t.y,
                          .norm_weight = t.norm_weight,
                          .residual = t.residual,
                          .bias = t.bias}));
  });
}

/// Packed random weights of a chain's product as a constant of its plan; they live in `kept`.
inline TensorId chain_weight(Device& device, Plan& plan,
                             std::vector<std::unique_ptr<PackedOnDevice>>& kept, std::int64_t n,
                             std::int64_t k, bool gated, std::uint64_t seed) {
  SkinnyCase c{.n = n, .k = k};
  c.options.gated = gated;
  std::vector<BFloat16> w = random_values<BFloat16>(n * k, seed);
  for (BFloat16& value : w) value = to_bfloat16(0.1F * to_float(value));
  kept.push_back(std::make_unique<PackedOnDevice>(device, packed(w, c)));
  return plan.tensor({.name = "w" + std::to_string(seed),
                      .shape = {n, k},
                      .dtype = DType::kBF16,
                      .kind = TensorKind::kConstant,
                      .address = kept.back()->address()});
}

/// Every result against sums in double precision. An fp32 sum of k products, whatever its order, is
/// off by at most k · 2^-24 of the sum of magnitudes; with a norm in front the sum of squares is
/// another one.
inline void expect_right(const SkinnyCase& c, const SkinnyData& data,
                         const std::vector<float>& got) {
  ASSERT_EQ(static_cast<std::int64_t>(got.size()), c.m * c.columns());
  double squares = 0;
  double squared_errors = 0;
  for (std::int64_t i = 0; i < c.m; ++i) {
    std::vector<double> x(static_cast<std::size_t>(c.k));
    double square = 0;
    for (std::int64_t k = 0; k < c.k; ++k) {
      x[static_cast<std::size_t>(k)] = data.x[static_cast<std::size_t>(i * c.k + k)];
      square += x[static_cast<std::size_t>(k)] * x[static_cast<std::size_t>(k)];
    }
    if (c.norm) {
      const double scale =
          1 / std::sqrt(square / static_cast<double>(c.k) + static_cast<double>(c.options.eps));
      for (std::int64_t k = 0; k < c.k; ++k) {
        auto& value = x[static_cast<std::size_t>(k)];
        value = scale * static_cast<double>(to_float(
                            to_bfloat16(static_cast<float>(value) *
                                        to_float(data.norm_weight[static_cast<std::size_t>(k)]))));
      }
    }
    const auto dot = [&](std::int64_t row, double& magnitude) {
      double sum =
          c.bias ? static_cast<double>(to_float(data.bias[static_cast<std::size_t>(row)])) : 0;
      for (std::int64_t k = 0; k < c.k; ++k) {
        const double product =
            x[static_cast<std::size_t>(k)] *
            static_cast<double>(to_float(data.w[static_cast<std::size_t>(row * c.k + k)]));
        sum += product;
        magnitude += std::fabs(product);
      }
      return sum;
    };
    const double term = static_cast<double>((c.norm ? 2 : 1) * c.k + 32) * std::ldexp(1.0, -24);
    for (std::int64_t j = 0; j < c.columns(); ++j) {
      double magnitude = 0;
      double want = dot(j, magnitude);
      double bound = magnitude * term;
      if (c.options.gated) {
        double up_magnitude = 0;
        const double up = dot(c.columns() + j, up_magnitude);
        const double gate = want;
        const double silu = gate / (1 + std::exp(-gate));
        want = silu * up;
        // silu' is at most 1.1; expf and the division are off by a few units of fp32.
        bound = 1.1 * bound * (std::fabs(up) + up_magnitude * term) +
                (std::fabs(silu) + 1e-30) * up_magnitude * term + std::fabs(want) * 1e-5;
      }
      const auto at = static_cast<std::size_t>(i * c.columns() + j);
      if (c.residual) want += static_cast<double>(data.residual[at]);
      bound += std::fabs(want) * (c.y_type == DType::kBF16 ? std::ldexp(1.0, -8) : 1e-6) + 1e-12;
      const double error = std::fabs(static_cast<double>(got[at]) - want);
      ASSERT_LE(error, bound) << c.text() << ": element (" << i << ", " << j << ") is " << got[at]
                              << ", must be " << want;
      squares += want * want;
      squared_errors += error * error;
    }
  }
  EXPECT_LE(std::sqrt(squared_errors), std::ldexp(1.0, -8) * std::sqrt(squares) + 1e-9) << c.text();
}

/// Sizes and cuts that meet every edge: 1, primes, tiles ± 1, several parts of K, ragged strips.
inline std::vector<SkinnyCase> skinny_cases() {
  std::vector<SkinnyCase> cases;
  for (const std::int64_t m : {1, 2, 7, 8, 9, 16, 17, 33, 64}) {
    const SkinnyGemmOptions ring{.stages = m <= 16 ? 4 : 1};
    cases.push_back({.m = m, .n = 131, .k = 523, .options = ring});
    cases.push_back({.m = m, .n = 48, .k = 1024, .norm = true, .residual = true, .options = ring});
  }
  for (const std::int64_t n : {1, 15, 16, 17, 257}) {
    cases.push_back({.n = n, .k = 64, .bias = true, .y_type = DType::kBF16});
  }
  for (const std::int64_t k : {1, 7, 8, 16, 17, 511, 512, 513, 2047, 2048, 2049, 4099}) {
    cases.push_back({.m = 3, .n = 35, .k = k, .options = {.strips_per_work = 2, .stages = 2}});
    cases.push_back({.m = 2, .n = 35, .k = k, .norm = true});
  }
  for (const std::int64_t split : {1, 2, 3}) {
    for (const std::int64_t m : {1, 5, 9}) {
      cases.push_back({.m = m,
                       .n = 70,
                       .k = 6151,
                       .residual = true,
                       .bias = true,
                       .options = {.strips_per_work = 2, .split_k = split, .stages = 2}});
      cases.push_back(
          {.m = m,
           .n = 2 * 35,
           .k = 6000,
           .bias = true,
           .y_type = DType::kBF16,
           .options = {
               .gated = true, .strips_per_work = 4, .split_k = split, .stages = 2, .window = 1}});
    }
  }
  cases.push_back({.m = 40, .n = 70, .k = 2500, .options = {.split_k = 3, .stages = 2}});
  cases.push_back({.m = 2, .n = 160, .k = 2100, .options = {.strips_per_work = 9, .stages = 6}});
  cases.push_back({.m = 4,
                   .n = 2 * 24,
                   .k = 2048,
                   .norm = true,
                   .y_type = DType::kBF16,
                   .options = {.gated = true, .strips_per_work = 2}});
  cases.push_back({.m = 2, .n = 96, .k = 3072, .options = {.strips_per_work = 3, .wait_k = 1024}});
  cases.push_back({.m = 2, .n = 96, .k = 5000, .options = {.split_k = 2, .wait_k = 2048}});
  return cases;
}

}  // namespace tileweave

// One GEMM, block after block without a device, beside its reference: what the tests of the CPU
// form's arithmetic share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/serial_lane.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/gemm/gemm_args.h"
#include "tileweave/kernels/gemm/gemm_ref.h"

namespace tileweave {

/// Operands of an epilogue; tensors are made for those that are not empty.
struct FusedValues {
  std::vector<float> bias = {};
  std::vector<float> residual = {};
  DType bias_type = DType::kF32;  // the values are exact in it
  GemmActivation activation = GemmActivation::kNone;
  bool gated = false;

  GemmEpilogueValues reference() const {
    return {.bias = bias, .residual = residual, .activation = activation, .gated = gated};
  }
};

template <class T>
std::vector<T> rounded_to(const std::vector<float>& values) {
  std::vector<T> rounded;
  for (const float value : values) rounded.push_back(from_float<T>(value));
  return rounded;
}

/// `values` as their nearest neighbours in T.
template <class T>
std::vector<float> through(const std::vector<float>& values) {
  std::vector<float> rounded;
  for (const float value : values) rounded.push_back(to_float(from_float<T>(value)));
  return rounded;
}

template <class TA, class TB, class TC>
std::vector<TC> run_gemm_serially(const GemmShape& shape, const GemmOptions& given,
                                  const std::vector<TA>& a, const std::vector<TB>& b,
                                  const FusedValues& fused = {},
                                  TensorKind b_kind = TensorKind::kConstant) {
  const std::int64_t columns = fused.gated ? 2 * shape.n : shape.n;
  const bool k_first = shape.b_layout == BLayout::kKxN;
  TensorTable tensors;
  const TensorId ta =
      tensors.add({.name = "a", .shape = {shape.m, shape.k}, .dtype = kDTypeOf<TA>});
  const TensorId tb =
      tensors.add({.name = "b",
                   .shape = k_first ? Shape{shape.k, columns} : Shape{columns, shape.k},
                   .dtype = kDTypeOf<TB>,
                   .kind = b_kind});
  const TensorId tc =
      tensors.add({.name = "c", .shape = {shape.m, shape.n}, .dtype = kDTypeOf<TC>});
  std::vector<TA> a_copy = a;
  std::vector<TB> b_copy = b;
  std::vector<TC> c(static_cast<std::size_t>(shape.m * shape.n));
  std::vector<void*> addresses = {a_copy.data(), b_copy.data(), c.data()};

  GemmOptions options = given;
  options.b_layout = shape.b_layout;
  options.epilogue.activation = fused.activation;
  options.epilogue.gated = fused.gated;
  std::vector<float> bias = fused.bias;
  std::vector<BFloat16> bias_bf16 = rounded_to<BFloat16>(bias);
  std::vector<Float16> bias_f16 = rounded_to<Float16>(bias);
  std::vector<float> residual = fused.residual;
  if (!bias.empty()) {
    options.epilogue.bias = tensors.add({.name = "bias",
                                         .shape = {columns},
                                         .dtype = fused.bias_type,
                                         .kind = TensorKind::kConstant});
    addresses.push_back(fused.bias_type == DType::kBF16  ? static_cast<void*>(bias_bf16.data())
                        : fused.bias_type == DType::kF16 ? static_cast<void*>(bias_f16.data())
                                                         : static_cast<void*>(bias.data()));
  }
  if (!residual.empty()) {
    options.epilogue.residual =
        tensors.add({.name = "residual", .shape = {shape.m, shape.n}, .dtype = DType::kF32});
    addresses.push_back(residual.data());
  }

  const NodeSpec node = gemm(tensors, options, ta, tb, tc);
  KernelLibrary kernels;
  add_gemm_cpu(kernels);
  const SerialLane lane = residual.empty() ? run_serially<GemmOperands::kCount>(
                                                 node, tensors, kernels, {.operands = addresses})
                                           : run_serially<GemmOperands::kSlotsWithResidual>(
                                                 node, tensors, kernels, {.operands = addresses});
  EXPECT_EQ(lane.works_run(), node.num_works);
  const GemmSchedule s = gemm_schedule(options, shape.m, shape.n, shape.k);
  EXPECT_EQ(lane.signals(), s.num_tiles()) << "one signal per C tile";
  return c;
}

/// Asserts that every element lies within the bound derived for `parts` partial sums.
template <class TA, class TB, class TC>
void expect_near_reference(const GemmShape& shape, const std::vector<TA>& a,
                           const std::vector<TB>& b, const std::vector<TC>& c, std::int64_t parts,
                           const FusedValues& fused = {}) {
  const GemmFusedReference exact =
      gemm_fused_reference<TA, TB>(shape, fused.reference(), a, b, parts, kDTypeOf<TC>);
  ASSERT_EQ(c.size(), exact.c.size());
  for (std::size_t i = 0; i < c.size(); ++i) {
    const double error = std::fabs(static_cast<double>(to_float(c[i])) - exact.c[i]);
    ASSERT_LE(error, exact.bounds[i])
        << "element " << i << ": " << to_float(c[i]) << " for " << exact.c[i];
  }
}

inline std::string words(const GemmShape& s) {
  return std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k) +
         (s.b_layout == BLayout::kKxN ? ", B (K, N)" : ", B (N, K)");
}

}  // namespace tileweave

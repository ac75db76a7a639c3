#include "tileweave/kernels/vendor/vendor_gemm.h"

#include <limits>

#include "tileweave/core/format.h"
#include "tileweave/kernels/vendor/vendor_gemm_args.h"
#include "tileweave/plan/node_check.h"

namespace tileweave {
namespace {

// The library counts rows and columns with 32 bits.
constexpr std::int64_t kMostSize = std::numeric_limits<std::int32_t>::max();

void check_all(const NodeCheck& check, const TensorTable& tensors,
               const VendorGemmTensors& operands) {
  const TensorSpec& x = tensors[operands.x].spec;
  const TensorSpec& w = tensors[operands.w].spec;
  const TensorSpec& y = tensors[operands.y].spec;
  for (const TensorSpec* t : {&x, &w, &y}) {
    check.matrix(*t);
    check.need(t->shape[0] >= 1 && t->shape[0] <= kMostSize && t->shape[1] >= 1 &&
                   t->shape[1] <= kMostSize,
               "`" + t->name + "` must have 1 to 2^31 - 1 rows and columns", to_string(t->shape));
  }
  check.shape(x, {x.shape[0], w.shape[1]});
  check.shape(y, {x.shape[0], w.shape[0]});
  check.type(x, {DType::kBF16});
  check.type(w, {DType::kBF16});
  check.constant(w);
  check.type(y, {DType::kF32, DType::kBF16});
  check.result(y);
  if (operands.residual != kNoTensor) {
    const TensorSpec& residual = tensors[operands.residual].spec;
    check.shape(residual, y.shape);
    check.type(residual, {y.dtype});
  }
  if (operands.bias != kNoTensor) {
    const TensorSpec& bias = tensors[operands.bias].spec;
    check.shape(bias, {w.shape[0]});
    check.constant(bias);
    check.type(bias, {DType::kF32, DType::kBF16});
    check.need(y.dtype == DType::kF32, "`" + y.name + "` must be f32 where there is a bias",
               name_of(y.dtype));
  }
}

}  // namespace

NodeSpec vendor_gemm(const TensorTable& tensors, const VendorGemmOptions& options,
                     const VendorGemmTensors& operands) {
  using Operands = VendorGemmOperands;
  const NodeCheck check("vendor_gemm", options.name);
  check_all(check, tensors, operands);
  NodeSpec node{
      .name = options.name,
      .kernel = kVendorGemmKernel,
      .operands = {{.tensor = operands.x},
                   {.tensor = operands.w, .when = ReadTime::kPrologue},
                   {.tensor = operands.y, .access = Access::kWrite}},
      .resources = {},
      .cost = options.cost.value_or(Cost{}),
      .scratch_bytes = options.workspace_bytes,
      .integrated = false,
  };
  const auto add = [&](TensorId id, ReadTime when) -> std::int32_t {
    if (id == kNoTensor) return -1;
    node.operands.push_back({.tensor = id, .when = when});
    return static_cast<std::int32_t>(node.operands.size()) - 1;
  };
  VendorGemmArgs args{};
  args.workspace_bytes = options.workspace_bytes;
  args.m = tensors[operands.x].spec.shape[0];
  args.n = tensors[operands.w].spec.shape[0];
  args.k = tensors[operands.w].spec.shape[1];
  args.y_type = tensors[operands.y].spec.dtype;
  args.bias_type = operands.bias == kNoTensor ? DType::kF32 : tensors[operands.bias].spec.dtype;
  args.residual_at = add(operands.residual, ReadTime::kAfterWait);
  args.bias_at = add(operands.bias, ReadTime::kPrologue);
  node.make_args = [args](const Addresses& at) {
    const auto address = [&](std::int32_t index) -> void* {
      return index < 0 ? nullptr : at.operands[static_cast<std::size_t>(index)];
    };
    VendorGemmArgs filled = args;
    filled.x = {static_cast<const BFloat16*>(address(Operands::kX))};
    filled.w = {static_cast<const BFloat16*>(address(Operands::kW))};
    filled.y = {address(Operands::kY)};
    filled.residual = {address(args.residual_at)};
    filled.bias = {address(args.bias_at)};
    filled.workspace = at.scratch;
    return to_bytes(filled);
  };
  return node;
}

}  // namespace tileweave

#include "tileweave/kernels/gemm/wide_gemm.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tileweave/core/format.h"
#include "tileweave/kernels/gemm/packed_product_check.h"
#include "tileweave/kernels/gemm/wide_gemm_args.h"

namespace tileweave {
namespace {

constexpr std::int32_t kRegisters = 255;

void check_all(const TensorTable& tensors, const WideGemmOptions& options,
               const WideGemmTensors& operands) {
  const NodeCheck check("wide_gemm", options.name);
  check_packed_product(check, tensors,
                       {.x = operands.x,
                        .w = operands.w,
                        .y = operands.y,
                        .residual = operands.residual,
                        .bias = operands.bias,
                        .gated = options.gated,
                        .most_rows = kMostProductSize});
  check.type(tensors[operands.x].spec, {DType::kBF16});
  const Shape& y = tensors[operands.y].spec.shape;
  const Shape& w = tensors[operands.w].spec.shape;
  const std::int64_t parts = ceil_div(w[1], kPartColumns);
  check.need(options.split_k >= 1 && options.split_k <= parts,
             "split_k must be between 1 and the " + std::to_string(parts) + " parts of K",
             std::to_string(options.split_k));
  check.need(ceil_div(y[0], kWideTokens) * ceil_div(w[0], kStripRows) <=
                 kMostProductSize / options.split_k,
             "fewer than 2^30 works", to_string(y));
}

WideGemmSchedule schedule_of(std::int64_t m, std::int64_t n, std::int64_t k,
                             const WideGemmOptions& options) {
  const PackedLayout layout{
      .n = n, .k = k, .order = options.gated ? StripOrder::kPaired : StripOrder::kRows};
  return {.m = static_cast<std::int32_t>(m),
          .n = static_cast<std::int32_t>(n),
          .k = static_cast<std::int32_t>(k),
          .num_strips = static_cast<std::int32_t>(layout.num_strips()),
          .token_tiles = static_cast<std::int32_t>(ceil_div(m, kWideTokens)),
          .split_k = static_cast<std::int32_t>(options.split_k),
          .gated = options.gated};
}

OperandSpec x_operand(TensorId id, const WideGemmSchedule& s) {
  return {.tensor = id,
          .kernel_tiles = TileSet::plain({{s.m, s.k}, {kWideTileTokens, s.k}}),
          .tiles_of_work =
              [s](std::int64_t work) {
                return std::vector<std::int64_t>{s.tile_of(static_cast<int>(work))};
              },
          .sync_slot = WideGemmOperands::kSlotX};
}

/// y and residual: the work's rows, the columns of its strips.
OperandSpec result_operand(TensorId id, const WideGemmSchedule& s, std::int32_t slot) {
  return {
      .tensor = id,
      .kernel_tiles = TileSet::plain({{s.m, s.columns()}, {kWideTileTokens, s.group_columns()}}),
      .tiles_of_work =
          [s](std::int64_t work) {
            const auto w = static_cast<int>(work);
            return std::vector<std::int64_t>{std::int64_t{s.tile_of(w)} * s.groups() +
                                             s.group_of(w)};
          },
      .sync_slot = slot};
}

}  // namespace

std::int64_t wide_gemm_split(std::int64_t m, std::int64_t n, std::int64_t k, std::int32_t num_sms) {
  const std::int64_t results = ceil_div(m, kWideTokens) * ceil_div(n, kWideStrips * kStripRows);
  return std::clamp<std::int64_t>(num_sms / results, 1, ceil_div(k, kPartColumns));
}

NodeSpec wide_gemm(const TensorTable& tensors, const WideGemmOptions& options,
                   const WideGemmTensors& operands) {
  check_all(tensors, options, operands);
  const Shape& w_shape = tensors[operands.w].spec.shape;
  const WideGemmSchedule s =
      schedule_of(tensors[operands.x].spec.shape[0], w_shape[0], w_shape[1], options);
  const bool has_residual = operands.residual != kNoTensor;
  NodeSpec node{.name = options.name,
                .kernel = kWideGemmKernel,
                .num_works = s.num_works(),
                .num_blocks = s.num_works(),
                .order = options.order,
                .operands = {x_operand(operands.x, s),
                             {.tensor = operands.w,
                              .when = ReadTime::kPrologue,
                              // Somebody must own the slot; a constant is never waited for.
                              .sync_slot = has_residual ? -1 : WideGemmOperands::kSlotResidual},
                             result_operand(operands.y, s, WideGemmOperands::kSlotY)},
                .resources = {.threads = kWideThreads,
                              .registers_per_thread = kRegisters,
                              .shared_bytes = WideShared::kBytes},
                .cost = options.cost.value_or(Cost{.per_work = options.cost_of_work}),
                .edge = options.edge};
  OperandSpec& y = node.operands[WideGemmOperands::kY];
  y.access = Access::kWrite;
  if (s.split_k > 1) {
    y.reduction = Reduction::kLastArriver;
    node.counter.arrivals.assign(static_cast<std::size_t>(s.num_results()),
                                 static_cast<std::uint32_t>(s.split_k));
    node.scratch_bytes = static_cast<std::size_t>(s.num_results()) *
                         static_cast<std::size_t>(s.parts()) * kWideSums * sizeof(float);
  }
  const auto add = [&](TensorId id, OperandSpec spec) {
    if (id == kNoTensor) return -1;
    node.operands.push_back(std::move(spec));
    return static_cast<int>(node.operands.size()) - 1;
  };
  const int at_bias =
      add(operands.bias, OperandSpec{.tensor = operands.bias, .when = ReadTime::kPrologue});
  const int at_residual =
      add(operands.residual,
          has_residual ? result_operand(operands.residual, s, WideGemmOperands::kSlotResidual)
                       : OperandSpec{});

  WideGemmArgs args{};
  args.schedule = s;
  args.bias_type = operands.bias == kNoTensor ? DType::kF32 : tensors[operands.bias].spec.dtype;
  args.y_type = tensors[operands.y].spec.dtype;
  node.make_args = [=](const Addresses& at) {
    const auto address = [&](int index) -> void* {
      return index < 0 ? nullptr : at.operands[static_cast<std::size_t>(index)];
    };
    WideGemmArgs filled = args;
    filled.x = {static_cast<const BFloat16*>(address(WideGemmOperands::kX))};
    filled.w = {static_cast<const BFloat16*>(address(WideGemmOperands::kW))};
    filled.y = {address(WideGemmOperands::kY)};
    filled.bias = {address(at_bias)};
    filled.residual = {static_cast<const float*>(address(at_residual))};
    filled.partials = static_cast<float*>(at.scratch);
    return to_bytes(filled);
  };
  return node;
}

}  // namespace tileweave

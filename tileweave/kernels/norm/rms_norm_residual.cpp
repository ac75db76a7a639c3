#include "tileweave/kernels/norm/rms_norm_residual.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/kernels/norm/rms_norm_residual_args.h"

namespace tileweave {
namespace {

using Operands = RmsNormResidualOperands;

void need(bool holds, const RmsNormResidualOptions& options, const std::string& expected,
          const std::string& got) {
  if (!holds) throw Error("make rms_norm_residual node `" + options.name + "`", expected, got);
}

void check_tensors(const RmsNormResidualOptions& options, const TensorTable& tensors,
                   const RmsNormResidualTensors& operands) {
  const TensorSpec& x = tensors[operands.x].spec;
  need(x.shape.num_axes == 2, options, "`" + x.name + "` must be a matrix",
       "shape " + to_string(x.shape));
  for (const TensorId id : {operands.x, operands.delta, operands.sum, operands.y}) {
    const TensorSpec& t = tensors[id].spec;
    need(t.shape == x.shape, options, "`" + t.name + "` must be " + to_string(x.shape),
         to_string(t.shape));
    if (id == operands.y && t.dtype == DType::kBF16) continue;
    need(t.dtype == DType::kF32, options,
         "`" + t.name + "` must be f32" + (id == operands.y ? " or bf16" : ""), name_of(t.dtype));
  }
  for (const TensorId id : {operands.sum, operands.y}) {
    const TensorSpec& t = tensors[id].spec;
    need(t.kind != TensorKind::kConstant, options,
         "the result `" + t.name + "` must not be constant", "a constant");
    need(id != operands.x && id != operands.delta, options,
         "the result must be another value than the operands (it may share a buffer)",
         "`" + t.name + "` as both");
  }
  need(operands.sum != operands.y, options, "sum and y must be two values",
       "`" + tensors[operands.y].spec.name + "` as both");
  need(tensors.buffer_owner(operands.sum) != tensors.buffer_owner(operands.y), options,
       "sum and y must lie in different buffers", "one buffer for both");
  const TensorSpec& weight = tensors[operands.weight].spec;
  const Shape row{x.shape[1]};
  need(weight.shape == row, options, "`" + weight.name + "` must be " + to_string(row),
       to_string(weight.shape));
  need(weight.dtype == DType::kF32 || weight.dtype == DType::kBF16 || weight.dtype == DType::kF16,
       options, "`" + weight.name + "` must be f32, bf16 or f16", name_of(weight.dtype));
  need(weight.kind == TensorKind::kConstant, options,
       "the weight `" + weight.name + "` must be constant", name_of(weight.kind));
}

void check_options(const RmsNormResidualOptions& options) {
  need(options.tile_m >= 1, options, "tile_m must be at least 1", std::to_string(options.tile_m));
  need(options.num_blocks >= 0, options, "num_blocks must not be negative",
       std::to_string(options.num_blocks));
  need(std::isfinite(options.eps) && options.eps >= 0, options,
       "eps must be finite and not negative", std::to_string(options.eps));
}

template <class W, class Y>
std::vector<std::byte> args_of(const Tiling& rows, std::int64_t num_blocks, float eps,
                               const Addresses& at) {
  const auto address = [&](int operand) { return at.operands[static_cast<std::size_t>(operand)]; };
  return to_bytes(
      RmsNormResidualArgs<W, Y>{.x = {static_cast<const float*>(address(Operands::kX))},
                                .delta = {static_cast<const float*>(address(Operands::kDelta))},
                                .weight = {static_cast<const W*>(address(Operands::kWeight))},
                                .sum = {static_cast<float*>(address(Operands::kSum))},
                                .y = {static_cast<Y*>(address(Operands::kY))},
                                .rows = rows,
                                .num_blocks = num_blocks,
                                .eps = eps});
}

template <class Y>
std::vector<std::byte> args_of(DType weight, const Tiling& rows, std::int64_t num_blocks, float eps,
                               const Addresses& at) {
  if (weight == DType::kF16) return args_of<Float16, Y>(rows, num_blocks, eps, at);
  if (weight == DType::kBF16) return args_of<BFloat16, Y>(rows, num_blocks, eps, at);
  return args_of<float, Y>(rows, num_blocks, eps, at);
}

}  // namespace

std::string rms_norm_residual_kernel_name(DType weight, DType y) {
  return std::string("rms_norm_residual.") + name_of(weight) + "." + name_of(y);
}

NodeSpec rms_norm_residual(const TensorTable& tensors, const RmsNormResidualOptions& options,
                           const RmsNormResidualTensors& operands) {
  check_tensors(options, tensors, operands);
  check_options(options);
  const Shape shape = tensors[operands.x].spec.shape;
  const DType weight = tensors[operands.weight].spec.dtype;
  const DType y = tensors[operands.y].spec.dtype;
  const Tiling rows{shape, {std::min(options.tile_m, shape[0]), shape[1]}};
  const std::int64_t works = rows.count();
  need(works <= std::numeric_limits<std::int32_t>::max(), options,
       "tile_m must be large enough for at most 2^31 - 1 row tiles", std::to_string(works));
  const auto operand = [&](TensorId id, Access access, std::int32_t slot) {
    return OperandSpec{
        .tensor = id, .access = access, .kernel_tiles = TileSet::plain(rows), .sync_slot = slot};
  };

  NodeSpec node{.name = options.name,
                .kernel = rms_norm_residual_kernel_name(weight, y),
                .num_works = works,
                .num_blocks = options.num_blocks == 0 ? works : std::min(options.num_blocks, works),
                .order = options.order,
                .operands = {operand(operands.x, Access::kRead, Operands::kSlotX),
                             operand(operands.delta, Access::kRead, Operands::kSlotDelta),
                             {.tensor = operands.weight, .when = ReadTime::kPrologue},
                             operand(operands.sum, Access::kWrite, Operands::kSlotSum),
                             operand(operands.y, Access::kWrite, Operands::kSlotY)},
                .resources = kRmsNormResidualResources,
                .cost = options.cost.value_or(Cost{
                    .per_work = options.cost_of_tile,
                    .of_work =
                        [rows, ticks = options.cost_of_tile](std::int64_t work) {
                          return ticks * static_cast<double>(rows.box(rows.coord(work)).size[0]) /
                                 static_cast<double>(rows.tile[0]);
                        }}),
                .edge = options.edge};
  node.make_args = [=, blocks = node.num_blocks, eps = options.eps](const Addresses& at) {
    return y == DType::kBF16 ? args_of<BFloat16>(weight, rows, blocks, eps, at)
                             : args_of<float>(weight, rows, blocks, eps, at);
  };
  return node;
}

}  // namespace tileweave

#include "tileweave/kernels/norm/rms_norm_residual.h"

#include <algorithm>

#include "tileweave/kernels/norm/rms_norm_residual_args.h"
#include "tileweave/plan/node_check.h"

namespace tileweave {
namespace {

using Operands = RmsNormResidualOperands;

void check_tensors(const NodeCheck& check, const TensorTable& tensors,
                   const RmsNormResidualTensors& operands) {
  const TensorSpec& x = tensors[operands.x].spec;
  check.matrix(x);
  for (const TensorId id : {operands.x, operands.delta, operands.sum}) {
    check.shape(tensors[id].spec, x.shape);
    check.type(tensors[id].spec, {DType::kF32});
  }
  check.shape(tensors[operands.y].spec, x.shape);
  check.type(tensors[operands.y].spec, {DType::kF32, DType::kBF16});
  for (const TensorId id : {operands.sum, operands.y}) {
    const TensorSpec& t = tensors[id].spec;
    check.result(t);
    check.need(id != operands.x && id != operands.delta,
               "the result must be another value than the operands (it may share a buffer)",
               "`" + t.name + "` as both");
  }
  check.need(operands.sum != operands.y, "sum and y must be two values",
             "`" + tensors[operands.y].spec.name + "` as both");
  check.need(tensors.buffer_owner(operands.sum) != tensors.buffer_owner(operands.y),
             "sum and y must lie in different buffers", "one buffer for both");
  const TensorSpec& weight = tensors[operands.weight].spec;
  check.shape(weight, {x.shape[1]});
  check.type(weight, {DType::kF32, DType::kBF16, DType::kF16});
  check.constant(weight, "the weight ");
}

void check_options(const NodeCheck& check, const RmsNormResidualOptions& options) {
  check.at_least(options.tile_m, 1, "tile_m");
  check.need(options.num_blocks >= 0, "num_blocks must not be negative",
             std::to_string(options.num_blocks));
  check.finite_and_not_negative(options.eps, "eps");
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
  const NodeCheck check("rms_norm_residual", options.name);
  check_tensors(check, tensors, operands);
  check_options(check, options);
  const Shape shape = tensors[operands.x].spec.shape;
  const DType weight = tensors[operands.weight].spec.dtype;
  const DType y = tensors[operands.y].spec.dtype;
  const Tiling rows{shape, {std::min(options.tile_m, shape[0]), shape[1]}};
  const std::int64_t works = rows.count();
  check.countable(works, "the row tiles");
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

#include "tileweave/kernels/norm/rms_norm.h"

#include <algorithm>

#include "tileweave/kernels/norm/rms_norm_args.h"
#include "tileweave/plan/node_check.h"

namespace tileweave {
namespace {

constexpr std::int64_t kMostPadding = std::int64_t{1} << 20;  // bytes; no SM has as many

void check_all(const NodeCheck& check, const RmsNormOptions& options, const TensorSpec& x,
               const TensorSpec& weight, const TensorSpec& y) {
  check.matrix(x);
  check.shape(weight, {x.shape[1]});
  check.shape(y, x.shape);
  check.type(x, {DType::kF32, DType::kBF16});
  check.type(weight, {DType::kF32, DType::kBF16, DType::kF16});
  check.type(y, {DType::kF32, DType::kBF16});
  check.need(weight.dtype != DType::kF16 || (x.dtype == DType::kF32 && y.dtype == DType::kF32),
             "with the f16 weight `" + weight.name + "` operand and result must be f32",
             std::string(name_of(x.dtype)) + " and " + name_of(y.dtype));
  check.constant(weight, "the weight ");
  check.result(y);
  check.at_least(options.tile_m, 1, "tile_m");
  check.need(options.num_blocks >= 0, "num_blocks must not be negative",
             std::to_string(options.num_blocks));
  check.finite_and_not_negative(options.eps, "eps");
}

/// Calls `visit` with a value of the element type that `type` names.
template <class Visit>
auto with_type(DType type, Visit visit) {
  if (type == DType::kF16) return visit(Float16{});
  return type == DType::kBF16 ? visit(BFloat16{}) : visit(0.0F);
}

}  // namespace

std::string rms_norm_kernel_name(DType x, DType weight, DType y) {
  return std::string("rms_norm.") + name_of(x) + "." + name_of(weight) + "." + name_of(y);
}

NodeSpec rms_norm(const TensorTable& tensors, const RmsNormOptions& options, TensorId x,
                  TensorId weight, TensorId y) {
  const Tensor& tx = tensors[x];
  const Tensor& tw = tensors[weight];
  const Tensor& ty = tensors[y];
  const NodeCheck check("rms_norm", options.name);
  check_all(check, options, tx.spec, tw.spec, ty.spec);
  check.need(x != y, "the result must be another value than the operand (it may share its buffer)",
             "`" + ty.spec.name + "` as both");
  check.need(options.shared_padding >= 0 && options.shared_padding <= kMostPadding,
             "shared_padding must be between 0 and " + std::to_string(kMostPadding),
             std::to_string(options.shared_padding));
  const Shape shape = tx.spec.shape;
  const std::int64_t tile_m = std::min(options.tile_m, shape[0]);
  const std::int64_t works = ceil_div(shape[0], tile_m);
  check.countable(works, "the row tiles");
  const TileSet rows = TileSet::plain({shape, {tile_m, shape[1]}});

  NodeSpec node{
      .name = options.name,
      .kernel = rms_norm_kernel_name(tx.spec.dtype, tw.spec.dtype, ty.spec.dtype),
      .num_works = works,
      .num_blocks = options.num_blocks == 0 ? works : std::min(options.num_blocks, works),
      .order = options.order,
      .operands = {{.tensor = x, .kernel_tiles = rows, .sync_slot = RmsNormOperands::kSlotX},
                   {.tensor = weight, .when = ReadTime::kPrologue},
                   {.tensor = y,
                    .access = Access::kWrite,
                    .kernel_tiles = rows,
                    .sync_slot = RmsNormOperands::kSlotY}},
      .resources = kRmsNormResources,
      .cost = options.cost.value_or(Cost{
          .per_work = options.cost_of_tile,
          .of_work =
              [=, ticks = options.cost_of_tile](std::int64_t work) {
                return ticks * static_cast<double>(std::min(tile_m, shape[0] - work * tile_m)) /
                       static_cast<double>(tile_m);
              }}),
      .edge = options.edge};
  node.resources.shared_bytes += options.shared_padding;
  node.make_args = [=, x_type = tx.spec.dtype, w_type = tw.spec.dtype, y_type = ty.spec.dtype,
                    blocks = node.num_blocks, eps = options.eps](const Addresses& at) {
    return with_type(x_type, [&]<class X>(X) {
      return with_type(w_type, [&]<class W>(W) {
        return with_type(y_type, [&]<class Y>(Y) {
          return to_bytes(RmsNormArgs<X, W, Y>{
              .x = {static_cast<const X*>(at.operands[RmsNormOperands::kX])},
              .weight = {static_cast<const W*>(at.operands[RmsNormOperands::kWeight])},
              .y = {static_cast<Y*>(at.operands[RmsNormOperands::kY])},
              .rows = shape[0],
              .cols = shape[1],
              .tile_m = tile_m,
              .num_works = works,
              .num_blocks = blocks,
              .eps = eps});
        });
      });
    });
  };
  return node;
}

}  // namespace tileweave

#include "tileweave/kernels/norm/rms_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/kernels/norm/rms_norm_args.h"

namespace tileweave {
namespace {

constexpr std::int64_t kMostPadding = std::int64_t{1} << 20;  // bytes; no SM has as many

void need(bool holds, const RmsNormOptions& options, const std::string& expected,
          const std::string& got) {
  if (!holds) throw Error("make rms_norm node `" + options.name + "`", expected, got);
}

void check(const RmsNormOptions& options, const Tensor& x, const Tensor& weight, const Tensor& y) {
  need(x.spec.shape.num_axes == 2, options, "`" + x.spec.name + "` must be a matrix",
       "shape " + to_string(x.spec.shape));
  const Shape row{x.spec.shape[1]};
  need(weight.spec.shape == row, options, "`" + weight.spec.name + "` must be " + to_string(row),
       to_string(weight.spec.shape));
  need(y.spec.shape == x.spec.shape, options,
       "`" + y.spec.name + "` must be " + to_string(x.spec.shape), to_string(y.spec.shape));
  for (const Tensor* t : {&x, &weight, &y}) {
    const bool half = t->spec.dtype == DType::kF16 && t == &weight;
    need(t->spec.dtype == DType::kF32 || t->spec.dtype == DType::kBF16 || half, options,
         "`" + t->spec.name + "` must be f32 or bf16" + (t == &weight ? " or f16" : ""),
         name_of(t->spec.dtype));
  }
  need(weight.spec.dtype != DType::kF16 ||
           (x.spec.dtype == DType::kF32 && y.spec.dtype == DType::kF32),
       options, "with the f16 weight `" + weight.spec.name + "` operand and result must be f32",
       std::string(name_of(x.spec.dtype)) + " and " + name_of(y.spec.dtype));
  need(weight.spec.kind == TensorKind::kConstant, options,
       "the weight `" + weight.spec.name + "` must be constant", name_of(weight.spec.kind));
  need(y.spec.kind != TensorKind::kConstant, options,
       "the result `" + y.spec.name + "` must not be constant", "a constant");
  need(options.tile_m >= 1, options, "tile_m must be at least 1", std::to_string(options.tile_m));
  need(options.num_blocks >= 0, options, "num_blocks must not be negative",
       std::to_string(options.num_blocks));
  need(std::isfinite(options.eps) && options.eps >= 0, options,
       "eps must be finite and not negative", std::to_string(options.eps));
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
  check(options, tx, tw, ty);
  need(x != y, options,
       "the result must be another value than the operand (it may share its buffer)",
       "`" + ty.spec.name + "` as both");
  need(options.shared_padding >= 0 && options.shared_padding <= kMostPadding, options,
       "shared_padding must be between 0 and " + std::to_string(kMostPadding),
       std::to_string(options.shared_padding));
  const Shape shape = tx.spec.shape;
  const std::int64_t tile_m = std::min(options.tile_m, shape[0]);
  const std::int64_t works = ceil_div(shape[0], tile_m);
  need(works <= std::numeric_limits<std::int32_t>::max(), options,
       "tile_m must be large enough for at most 2^31 - 1 row tiles", std::to_string(works));
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

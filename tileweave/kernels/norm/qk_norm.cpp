#include "tileweave/kernels/norm/qk_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/kernels/norm/qk_norm_args.h"

namespace tileweave {
namespace {

using Operands = QkNormOperands;

void need(bool holds, const QkNormOptions& options, const std::string& expected,
          const std::string& got) {
  if (!holds) throw Error("make qk_norm node `" + options.name + "`", expected, got);
}

void check_options(const QkNormOptions& options) {
  const auto at_least = [&](std::int64_t value, std::int64_t least, const char* what) {
    need(value >= least, options, std::string(what) + " must be at least " + std::to_string(least),
         std::to_string(value));
  };
  at_least(options.heads, 1, "heads");
  at_least(options.kv_heads, 1, "kv_heads");
  at_least(options.tile_m, 1, "tile_m");
  at_least(options.tile_heads, 0, "tile_heads");
  at_least(options.num_blocks, 0, "num_blocks");
  need(std::isfinite(options.eps) && options.eps >= 0, options,
       "eps must be finite and not negative", std::to_string(options.eps));
}

void check_weight(const QkNormOptions& options, const TensorSpec& weight) {
  need(weight.shape.num_axes == 1, options, "`" + weight.name + "` must be a vector (head_dim)",
       "shape " + to_string(weight.shape));
  need(weight.dtype == DType::kF32 || weight.dtype == DType::kBF16 || weight.dtype == DType::kF16,
       options, "`" + weight.name + "` must be f32, bf16 or f16", name_of(weight.dtype));
  need(weight.kind == TensorKind::kConstant, options,
       "the weight `" + weight.name + "` must be constant", name_of(weight.kind));
}

void check_tensors(const QkNormOptions& options, const TensorSpec& qkv, const TensorSpec& q_weight,
                   const TensorSpec& k_weight, const TensorSpec& out) {
  check_weight(options, q_weight);
  check_weight(options, k_weight);
  need(k_weight.shape == q_weight.shape && k_weight.dtype == q_weight.dtype, options,
       "`" + k_weight.name + "` must be " + to_string(q_weight.shape) + " " +
           name_of(q_weight.dtype) + " like `" + q_weight.name + "`",
       to_string(k_weight.shape) + " " + name_of(k_weight.dtype));
  const std::int64_t heads = options.heads + 2 * options.kv_heads;
  const std::int64_t head_dim = q_weight.shape[0];
  need(qkv.shape.num_axes == 2 && qkv.shape[1] == heads * head_dim, options,
       "`" + qkv.name + "` must be (T, " + std::to_string(heads * head_dim) + ") for " +
           std::to_string(heads) + " heads of " + std::to_string(head_dim),
       to_string(qkv.shape));
  need(out.shape == qkv.shape, options, "`" + out.name + "` must be " + to_string(qkv.shape),
       to_string(out.shape));
  for (const TensorSpec* t : {&qkv, &out}) {
    need(t->dtype == DType::kF32, options, "`" + t->name + "` must be f32", name_of(t->dtype));
  }
  need(out.kind != TensorKind::kConstant, options,
       "the result `" + out.name + "` must not be constant", "a constant");
}

template <class W>
std::vector<std::byte> args_of(const QkNormOptions& options, const Tiling& tiles,
                               std::int64_t head_dim, std::int64_t num_blocks,
                               const Addresses& at) {
  const auto address = [&](int operand) { return at.operands[static_cast<std::size_t>(operand)]; };
  return to_bytes(QkNormArgs<W>{.qkv = {static_cast<const float*>(address(Operands::kQkv))},
                                .q_weight = {static_cast<const W*>(address(Operands::kQWeight))},
                                .k_weight = {static_cast<const W*>(address(Operands::kKWeight))},
                                .out = {static_cast<float*>(address(Operands::kOut))},
                                .tiles = tiles,
                                .heads = options.heads,
                                .kv_heads = options.kv_heads,
                                .head_dim = head_dim,
                                .num_blocks = num_blocks,
                                .eps = options.eps});
}

}  // namespace

std::string qk_norm_kernel_name(DType weight) {
  return std::string("qk_norm.") + name_of(weight);
}

NodeSpec qk_norm(const TensorTable& tensors, const QkNormOptions& options, TensorId qkv,
                 TensorId q_weight, TensorId k_weight, TensorId out) {
  check_options(options);
  check_tensors(options, tensors[qkv].spec, tensors[q_weight].spec, tensors[k_weight].spec,
                tensors[out].spec);
  need(qkv != out, options,
       "the result must be another value than the operand (it may share its buffer)",
       "`" + tensors[out].spec.name + "` as both");
  const Shape shape = tensors[qkv].spec.shape;
  const DType weight = tensors[q_weight].spec.dtype;
  const std::int64_t head_dim = tensors[q_weight].spec.shape[0];
  const std::int64_t heads = options.heads + 2 * options.kv_heads;
  const std::int64_t tile_heads =
      options.tile_heads == 0 ? heads : std::min(options.tile_heads, heads);
  const Tiling tiles{shape, {std::min(options.tile_m, shape[0]), tile_heads * head_dim}};
  const std::int64_t works = tiles.count();
  need(works <= std::numeric_limits<std::int32_t>::max(), options,
       "the tiles must be large enough for at most 2^31 - 1 of them", std::to_string(works));

  NodeSpec node{.name = options.name,
                .kernel = qk_norm_kernel_name(weight),
                .num_works = works,
                .num_blocks = options.num_blocks == 0 ? works : std::min(options.num_blocks, works),
                .order = options.order,
                .operands = {{.tensor = qkv,
                              .kernel_tiles = TileSet::plain(tiles),
                              .sync_slot = Operands::kSlotQkv},
                             {.tensor = q_weight, .when = ReadTime::kPrologue},
                             {.tensor = k_weight, .when = ReadTime::kPrologue},
                             {.tensor = out,
                              .access = Access::kWrite,
                              .kernel_tiles = TileSet::plain(tiles),
                              .sync_slot = Operands::kSlotOut}},
                .resources = kQkNormResources,
                .cost = options.cost.value_or(
                    Cost{.per_work = options.cost_of_tile,
                         .of_work =
                             [tiles, ticks = options.cost_of_tile](std::int64_t work) {
                               return ticks *
                                      static_cast<double>(tiles.box(tiles.coord(work)).volume()) /
                                      static_cast<double>(tiles.tile.volume());
                             }}),
                .edge = options.edge};
  node.make_args = [=, blocks = node.num_blocks](const Addresses& at) {
    if (weight == DType::kF16) return args_of<Float16>(options, tiles, head_dim, blocks, at);
    if (weight == DType::kBF16) return args_of<BFloat16>(options, tiles, head_dim, blocks, at);
    return args_of<float>(options, tiles, head_dim, blocks, at);
  };
  return node;
}

}  // namespace tileweave

#include "tileweave/kernels/norm/qk_norm.h"

#include <algorithm>

#include "tileweave/core/format.h"
#include "tileweave/kernels/norm/qk_norm_args.h"
#include "tileweave/plan/node_check.h"

namespace tileweave {
namespace {

using Operands = QkNormOperands;

void check_options(const NodeCheck& check, const QkNormOptions& options) {
  check.at_least(options.heads, 1, "heads");
  check.at_least(options.kv_heads, 1, "kv_heads");
  check.at_least(options.tile_m, 1, "tile_m");
  check.at_least(options.tile_heads, 0, "tile_heads");
  check.at_least(options.num_blocks, 0, "num_blocks");
  check.finite_and_not_negative(options.eps, "eps");
}

void check_weight(const NodeCheck& check, const TensorSpec& weight) {
  check.need(weight.shape.num_axes == 1, "`" + weight.name + "` must be a vector (head_dim)",
             "shape " + to_string(weight.shape));
  check.type(weight, {DType::kF32, DType::kBF16, DType::kF16});
  check.constant(weight, "the weight ");
}

void check_tensors(const NodeCheck& check, const QkNormOptions& options, const TensorSpec& qkv,
                   const TensorSpec& q_weight, const TensorSpec& k_weight, const TensorSpec& out) {
  check_weight(check, q_weight);
  check_weight(check, k_weight);
  check.need(k_weight.shape == q_weight.shape && k_weight.dtype == q_weight.dtype,
             "`" + k_weight.name + "` must be " + to_string(q_weight.shape) + " " +
                 name_of(q_weight.dtype) + " like `" + q_weight.name + "`",
             to_string(k_weight.shape) + " " + name_of(k_weight.dtype));
  const std::int64_t heads = options.heads + 2 * options.kv_heads;
  const std::int64_t head_dim = q_weight.shape[0];
  check.need(qkv.shape.num_axes == 2 && qkv.shape[1] == heads * head_dim,
             "`" + qkv.name + "` must be (T, " + std::to_string(heads * head_dim) + ") for " +
                 std::to_string(heads) + " heads of " + std::to_string(head_dim),
             to_string(qkv.shape));
  check.shape(out, qkv.shape);
  check.type(qkv, {DType::kF32});
  check.type(out, {DType::kF32});
  check.result(out);
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
  const NodeCheck check("qk_norm", options.name);
  check_options(check, options);
  check_tensors(check, options, tensors[qkv].spec, tensors[q_weight].spec, tensors[k_weight].spec,
                tensors[out].spec);
  check.need(qkv != out,
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
  check.countable(works);

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

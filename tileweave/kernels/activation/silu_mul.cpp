#include "tileweave/kernels/activation/silu_mul.h"

#include <algorithm>
#include <vector>

#include "tileweave/core/format.h"
#include "tileweave/kernels/activation/silu_mul_args.h"
#include "tileweave/plan/node_check.h"

namespace tileweave {
namespace {

using Operands = SiluMulOperands;

void check_all(const NodeCheck& check, const SiluMulOptions& options, const TensorSpec& gate_up,
               const TensorSpec& out) {
  check.matrix(gate_up);
  check.type(gate_up, {DType::kF32});
  check.matrix(out);
  check.type(out, {DType::kF32, DType::kBF16});
  check.need(gate_up.shape[1] % 2 == 0,
             "`" + gate_up.name + "` must have an even number of columns, gate and up",
             to_string(gate_up.shape));
  check.shape(out, {gate_up.shape[0], gate_up.shape[1] / 2});
  check.result(out);
  check.at_least(options.tile_m, 1, "tile_m");
  check.at_least(options.tile_n, 0, "tile_n");
  check.at_least(options.num_blocks, 0, "num_blocks");
}

TileSet input_tiles(const Tiling& tiles) {
  const Shape shape{tiles.shape[0], 2 * tiles.shape[1]};
  if (SiluMulInput::is_grid(tiles)) return TileSet::plain({shape, tiles.tile});
  std::vector<Box> boxes;
  for (std::int64_t t = 0; t < tiles.count(); ++t) {
    for (const int part : {0, 1}) {
      boxes.push_back(SiluMulInput::box(tiles, tiles.coord(t), part));
    }
  }
  return TileSet::loose_table(shape, std::move(boxes));
}

OperandSpec input(TensorId id, const Tiling& tiles) {
  OperandSpec operand{
      .tensor = id, .kernel_tiles = input_tiles(tiles), .sync_slot = Operands::kSlotGateUp};
  operand.tiles_of_work = [tiles, set = operand.kernel_tiles](std::int64_t work) {
    const Coord tile = tiles.coord(work);
    return std::vector{set.linear(SiluMulInput::tile(tiles, tile, 0)),
                       set.linear(SiluMulInput::tile(tiles, tile, 1))};
  };
  return operand;
}

template <class Y>
std::vector<std::byte> args_of(const Tiling& tiles, std::int64_t num_blocks, const Addresses& at) {
  return to_bytes(
      SiluMulArgs<Y>{.gate_up = {static_cast<const float*>(at.operands[Operands::kGateUp])},
                     .out = {static_cast<Y*>(at.operands[Operands::kOut])},
                     .tiles = tiles,
                     .num_blocks = num_blocks});
}

}  // namespace

std::string silu_mul_kernel_name(DType out) {
  return std::string("silu_mul.") + name_of(out);
}

NodeSpec silu_mul(const TensorTable& tensors, const SiluMulOptions& options, TensorId gate_up,
                  TensorId out) {
  const NodeCheck check("silu_mul", options.name);
  check_all(check, options, tensors[gate_up].spec, tensors[out].spec);
  const Shape shape = tensors[out].spec.shape;
  const Tiling tiles{shape,
                     {std::min(options.tile_m, shape[0]),
                      options.tile_n == 0 ? shape[1] : std::min(options.tile_n, shape[1])}};
  const std::int64_t works = tiles.count();
  check.countable(works);
  const DType type = tensors[out].spec.dtype;
  NodeSpec node{.name = options.name,
                .kernel = silu_mul_kernel_name(type),
                .num_works = works,
                .num_blocks = options.num_blocks == 0 ? works : std::min(options.num_blocks, works),
                .order = options.order,
                .operands = {input(gate_up, tiles),
                             {.tensor = out,
                              .access = Access::kWrite,
                              .kernel_tiles = TileSet::plain(tiles),
                              .sync_slot = Operands::kSlotOut}},
                .resources = kSiluMulResources,
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
    return type == DType::kBF16 ? args_of<BFloat16>(tiles, blocks, at)
                                : args_of<float>(tiles, blocks, at);
  };
  return node;
}

}  // namespace tileweave

#include "tileweave/kernels/activation/silu_mul.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/kernels/activation/silu_mul_args.h"

namespace tileweave {
namespace {

using Operands = SiluMulOperands;

void need(bool holds, const SiluMulOptions& options, const std::string& expected,
          const std::string& got) {
  if (!holds) throw Error("make silu_mul node `" + options.name + "`", expected, got);
}

void check(const SiluMulOptions& options, const TensorSpec& gate_up, const TensorSpec& out) {
  for (const TensorSpec* t : {&gate_up, &out}) {
    need(t->shape.num_axes == 2, options, "`" + t->name + "` must be a matrix",
         "shape " + to_string(t->shape));
    if (t == &out && t->dtype == DType::kBF16) continue;
    need(t->dtype == DType::kF32, options,
         "`" + t->name + "` must be f32" + (t == &out ? " or bf16" : ""), name_of(t->dtype));
  }
  need(gate_up.shape[1] % 2 == 0, options,
       "`" + gate_up.name + "` must have an even number of columns, gate and up",
       to_string(gate_up.shape));
  const Shape half{gate_up.shape[0], gate_up.shape[1] / 2};
  need(out.shape == half, options, "`" + out.name + "` must be " + to_string(half),
       to_string(out.shape));
  need(out.kind != TensorKind::kConstant, options,
       "the result `" + out.name + "` must not be constant", "a constant");
  const auto at_least = [&](std::int64_t value, std::int64_t least, const char* what) {
    need(value >= least, options, std::string(what) + " must be at least " + std::to_string(least),
         std::to_string(value));
  };
  at_least(options.tile_m, 1, "tile_m");
  at_least(options.tile_n, 0, "tile_n");
  at_least(options.num_blocks, 0, "num_blocks");
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
  check(options, tensors[gate_up].spec, tensors[out].spec);
  const Shape shape = tensors[out].spec.shape;
  const Tiling tiles{shape,
                     {std::min(options.tile_m, shape[0]),
                      options.tile_n == 0 ? shape[1] : std::min(options.tile_n, shape[1])}};
  const std::int64_t works = tiles.count();
  need(works <= std::numeric_limits<std::int32_t>::max(), options,
       "the tiles must be large enough for at most 2^31 - 1 of them", std::to_string(works));
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

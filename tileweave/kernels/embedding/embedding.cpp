#include "tileweave/kernels/embedding/embedding.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/kernels/embedding/embedding_args.h"

namespace tileweave {
namespace {

using Operands = EmbeddingOperands;

void need(bool holds, const EmbeddingOptions& options, const std::string& expected,
          const std::string& got) {
  if (!holds) throw Error("make embedding node `" + options.name + "`", expected, got);
}

void check(const EmbeddingOptions& options, const TensorSpec& ids, const TensorSpec& table,
           const TensorSpec& out) {
  need(ids.shape.num_axes == 1, options, "`" + ids.name + "` must be a vector (T)",
       "shape " + to_string(ids.shape));
  need(ids.dtype == DType::kI32, options, "`" + ids.name + "` must be i32", name_of(ids.dtype));
  need(table.shape.num_axes == 2, options, "`" + table.name + "` must be a matrix (V, H)",
       "shape " + to_string(table.shape));
  need(table.dtype == DType::kF32 || table.dtype == DType::kBF16 || table.dtype == DType::kF16,
       options, "`" + table.name + "` must be f32, bf16 or f16", name_of(table.dtype));
  const Shape shape{ids.shape[0], table.shape[1]};
  need(out.shape == shape, options, "`" + out.name + "` must be " + to_string(shape),
       to_string(out.shape));
  const bool both_bf16 = table.dtype == DType::kBF16 && out.dtype == DType::kBF16;
  need(out.dtype == DType::kF32 || both_bf16, options,
       "`" + out.name + "` must be f32" + (table.dtype == DType::kBF16 ? " or bf16" : ""),
       name_of(out.dtype));
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

ReadTime read_time(const TensorSpec& t) {
  return t.kind == TensorKind::kConstant ? ReadTime::kPrologue : ReadTime::kAfterWait;
}

/// Work {m, n} reads ids of row tile m and, of whatever rows they name, columns of tile n.
std::vector<OperandSpec> operand_specs(const TensorTable& tensors, TensorId ids, TensorId table,
                                       TensorId out, const Tiling& tiles) {
  const Shape& whole = tensors[table].spec.shape;
  return {
      {.tensor = ids,
       .when = read_time(tensors[ids].spec),
       .kernel_tiles = TileSet::plain({{tiles.shape[0]}, {tiles.tile[0]}}),
       .tiles_of_work = [tiles](std::int64_t work) { return std::vector{tiles.coord(work)[0]}; },
       .sync_slot = Operands::kSlotIds},
      {.tensor = table,
       .when = read_time(tensors[table].spec),
       .kernel_tiles = TileSet::plain({whole, {whole[0], tiles.tile[1]}}),
       .tiles_of_work = [tiles](std::int64_t work) { return std::vector{tiles.coord(work)[1]}; },
       .sync_slot = Operands::kSlotTable},
      {.tensor = out,
       .access = Access::kWrite,
       .kernel_tiles = TileSet::plain(tiles),
       .sync_slot = Operands::kSlotOut}};
}

template <class T, class Y>
std::vector<std::byte> args_of(const Tiling& tiles, std::int64_t table_rows, bool table_constant,
                               std::int64_t num_blocks, const Addresses& at) {
  const auto* table = static_cast<const T*>(at.operands[Operands::kTable]);
  return to_bytes(
      EmbeddingArgs<T, Y>{.ids = {static_cast<const std::int32_t*>(at.operands[Operands::kIds])},
                          .table_stable = {table_constant ? table : nullptr},
                          .table_produced = {table_constant ? nullptr : table},
                          .out = {static_cast<Y*>(at.operands[Operands::kOut])},
                          .tiles = tiles,
                          .table_rows = table_rows,
                          .num_blocks = num_blocks});
}

}  // namespace

std::string embedding_kernel_name(DType table, DType out) {
  return std::string("embedding.") + name_of(table) + "." + name_of(out);
}

NodeSpec embedding(const TensorTable& tensors, const EmbeddingOptions& options, TensorId ids,
                   TensorId table, TensorId out) {
  check(options, tensors[ids].spec, tensors[table].spec, tensors[out].spec);
  need(table != out, options, "the result must be another tensor than the table",
       "`" + tensors[out].spec.name + "` as both");
  need(tensors.buffer_owner(table) != tensors.buffer_owner(out), options,
       "the result must not lie in the buffer of the table, whose rows are read in any order",
       "one buffer for both");
  const Shape shape = tensors[out].spec.shape;
  const Tiling tiles{shape,
                     {std::min(options.tile_m, shape[0]),
                      options.tile_n == 0 ? shape[1] : std::min(options.tile_n, shape[1])}};
  const std::int64_t works = tiles.count();
  need(works <= std::numeric_limits<std::int32_t>::max(), options,
       "the tiles must be large enough for at most 2^31 - 1 of them", std::to_string(works));
  const DType type = tensors[table].spec.dtype;
  const DType out_type = tensors[out].spec.dtype;
  NodeSpec node{.name = options.name,
                .kernel = embedding_kernel_name(type, out_type),
                .num_works = works,
                .num_blocks = options.num_blocks == 0 ? works : std::min(options.num_blocks, works),
                .order = options.order,
                .operands = operand_specs(tensors, ids, table, out, tiles),
                .resources = kEmbeddingResources,
                .cost = options.cost.value_or(
                    Cost{.per_work = options.cost_of_tile,
                         .of_work =
                             [tiles, ticks = options.cost_of_tile](std::int64_t work) {
                               return ticks *
                                      static_cast<double>(tiles.box(tiles.coord(work)).volume()) /
                                      static_cast<double>(tiles.tile.volume());
                             }}),
                .edge = options.edge};
  const bool constant = tensors[table].spec.kind == TensorKind::kConstant;
  const std::int64_t rows = tensors[table].spec.shape[0];
  node.make_args = [=, blocks = node.num_blocks](const Addresses& at) {
    if (out_type == DType::kBF16) {
      return args_of<BFloat16, BFloat16>(tiles, rows, constant, blocks, at);
    }
    if (type == DType::kF16) return args_of<Float16, float>(tiles, rows, constant, blocks, at);
    if (type == DType::kBF16) return args_of<BFloat16, float>(tiles, rows, constant, blocks, at);
    return args_of<float, float>(tiles, rows, constant, blocks, at);
  };
  return node;
}

}  // namespace tileweave

#include "tileweave/kernels/embedding/embedding.h"

#include <algorithm>
#include <vector>

#include "tileweave/core/format.h"
#include "tileweave/kernels/embedding/embedding_args.h"
#include "tileweave/plan/node_check.h"

namespace tileweave {
namespace {

using Operands = EmbeddingOperands;

void check_all(const NodeCheck& check, const EmbeddingOptions& options, const TensorSpec& ids,
               const TensorSpec& table, const TensorSpec& out) {
  check.need(ids.shape.num_axes == 1, "`" + ids.name + "` must be a vector (T)",
             "shape " + to_string(ids.shape));
  check.type(ids, {DType::kI32});
  check.need(table.shape.num_axes == 2, "`" + table.name + "` must be a matrix (V, H)",
             "shape " + to_string(table.shape));
  check.type(table, {DType::kF32, DType::kBF16, DType::kF16});
  check.shape(out, {ids.shape[0], table.shape[1]});
  if (table.dtype == DType::kBF16) {
    check.type(out, {DType::kF32, DType::kBF16});
  } else {
    check.type(out, {DType::kF32});
  }
  check.result(out);
  check.at_least(options.tile_m, 1, "tile_m");
  check.at_least(options.tile_n, 0, "tile_n");
  check.at_least(options.num_blocks, 0, "num_blocks");
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
  const NodeCheck check("embedding", options.name);
  check_all(check, options, tensors[ids].spec, tensors[table].spec, tensors[out].spec);
  check.need(table != out, "the result must be another tensor than the table",
             "`" + tensors[out].spec.name + "` as both");
  check.need(tensors.buffer_owner(table) != tensors.buffer_owner(out),
             "the result must not lie in the buffer of the table, whose rows are read in any order",
             "one buffer for both");
  const Shape shape = tensors[out].spec.shape;
  const Tiling tiles{shape,
                     {std::min(options.tile_m, shape[0]),
                      options.tile_n == 0 ? shape[1] : std::min(options.tile_n, shape[1])}};
  const std::int64_t works = tiles.count();
  check.countable(works);
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

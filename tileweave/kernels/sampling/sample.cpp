#include "tileweave/kernels/sampling/sample.h"

#include <algorithm>
#include <limits>

#include "tileweave/kernels/sampling/node_check.h"
#include "tileweave/kernels/sampling/sample_args.h"

namespace tileweave {
namespace {

using Operands = SampleOperands;

void check_parameters(const NodeCheck& check, const TensorTable& tensors, const SampleTensors& at,
                      std::int64_t rows) {
  for (const TensorId id : {at.temperature, at.top_p, at.min_p, at.repetition_penalty}) {
    check.type(tensors[id], DType::kF32);
    check.shape(tensors[id], {rows});
    check.constant(tensors[id]);
  }
  for (const TensorId id : {at.top_k, at.seed, at.position, at.history, at.history_length}) {
    check.type(tensors[id], DType::kI32);
    check.constant(tensors[id]);
  }
  for (const TensorId id : {at.top_k, at.position, at.history_length}) {
    check.shape(tensors[id], {rows});
  }
  check.shape(tensors[at.seed], {rows, 2});
  const Tensor& history = tensors[at.history];
  check.matrix(history);
  check.shape(history, {rows, history.spec.shape[1]});
}

void check(const TensorTable& tensors, const SampleOptions& options, const SampleTensors& at) {
  const NodeCheck check("make sample node `" + options.name + "`");
  const Tensor& logits = tensors[at.logits];
  check.matrix(logits);
  check.type(logits, DType::kF32);
  const std::int64_t rows = logits.spec.shape[0];
  check_parameters(check, tensors, at, rows);
  check.type(tensors[at.ids], DType::kI32);
  check.shape(tensors[at.ids], {rows});
  check.result(tensors[at.ids]);
  check.at_least(options.tile_m, 1, "tile_m");
  check.at_least(options.tile_n, 1, "tile_n");
  check.at_least(options.num_blocks, 0, "num_blocks");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  check.need(logits.spec.shape[1] <= kMost,
             NodeCheck::quoted(logits) + " must have fewer than 2^31 columns",
             std::to_string(logits.spec.shape[1]));
  const std::int64_t works = ceil_div(rows, options.tile_m);
  check.need(works <= kMost, "tile_m must be large enough for fewer than 2^31 works",
             std::to_string(works));
}

/// A work reads all column tiles of its rows.
OperandSpec logits_operand(TensorId id, const SampleArgs& shape) {
  return {.tensor = id,
          .kernel_tiles = TileSet::plain({{shape.rows, shape.cols}, {shape.tile_m, shape.tile_n}}),
          .tiles_of_work =
              [tiles_n = shape.tiles_n()](std::int64_t work) {
                std::vector<std::int64_t> tiles;
                for (std::int64_t n = 0; n < tiles_n; ++n) tiles.push_back(work * tiles_n + n);
                return tiles;
              },
          .sync_slot = Operands::kSlotLogits};
}

/// Rows of a work's own, of a tensor with one row per sequence.
OperandSpec parameter(const TensorTable& tensors, TensorId id, std::int64_t tile_m) {
  const Shape shape = tensors[id].spec.shape;
  Coord tile = shape;
  tile[0] = tile_m;
  return {.tensor = id, .when = ReadTime::kPrologue, .kernel_tiles = TileSet::plain({shape, tile})};
}

Cost cost_of(std::int64_t rows, std::int64_t tile_m, double ticks) {
  return {.per_work = ticks, .of_work = [=](std::int64_t work) {
            return ticks * static_cast<double>(std::min(tile_m, rows - work * tile_m)) /
                   static_cast<double>(tile_m);
          }};
}

}  // namespace

NodeSpec sample(const TensorTable& tensors, const SampleOptions& options, const SampleTensors& at) {
  check(tensors, options, at);
  const Shape logits = tensors[at.logits].spec.shape;
  SampleArgs args{};
  args.rows = logits[0];
  args.cols = logits[1];
  args.max_history = tensors[at.history].spec.shape[1];
  args.tile_m = std::min(options.tile_m, args.rows);
  args.tile_n = std::min(options.tile_n, args.cols);
  const std::int64_t works = args.num_works();
  args.num_blocks = options.num_blocks == 0 ? works : std::min(options.num_blocks, works);

  NodeSpec node{
      .name = options.name,
      .kernel = kSampleKernel,
      .num_works = works,
      .num_blocks = args.num_blocks,
      .order = options.order,
      .operands = {logits_operand(at.logits, args)},
      .resources = kSampleResources,
      .cost = options.cost.value_or(cost_of(args.rows, args.tile_m, options.cost_of_tile)),
      .edge = options.edge};
  node.scratch_bytes =
      static_cast<std::size_t>(args.num_blocks * args.score_stride()) * sizeof(float);
  for (const TensorId id : {at.temperature, at.top_p, at.min_p, at.repetition_penalty, at.top_k,
                            at.seed, at.position, at.history, at.history_length}) {
    node.operands.push_back(parameter(tensors, id, args.tile_m));
  }
  node.operands.push_back({.tensor = at.ids,
                           .access = Access::kWrite,
                           .kernel_tiles = TileSet::plain({{args.rows}, {args.tile_m}}),
                           .sync_slot = Operands::kSlotIds});
  node.make_args = [args](const Addresses& addresses) {
    SampleArgs placed = args;
    const auto f32 = [&](int operand) {
      return static_cast<const float*>(addresses.operands[static_cast<std::size_t>(operand)]);
    };
    const auto i32 = [&](int operand) {
      return static_cast<const std::int32_t*>(
          addresses.operands[static_cast<std::size_t>(operand)]);
    };
    placed.logits = {f32(Operands::kLogits)};
    placed.temperature = {f32(Operands::kTemperature)};
    placed.top_p = {f32(Operands::kTopP)};
    placed.min_p = {f32(Operands::kMinP)};
    placed.repetition_penalty = {f32(Operands::kRepetitionPenalty)};
    placed.top_k = {i32(Operands::kTopK)};
    placed.seed = {i32(Operands::kSeed)};
    placed.position = {i32(Operands::kPosition)};
    placed.history = {i32(Operands::kHistory)};
    placed.history_length = {i32(Operands::kHistoryLength)};
    placed.scores = static_cast<float*>(addresses.scratch);
    placed.ids = {static_cast<std::int32_t*>(addresses.operands[Operands::kIds])};
    return to_bytes(placed);
  };
  return node;
}

}  // namespace tileweave

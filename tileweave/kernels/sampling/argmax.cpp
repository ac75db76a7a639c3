#include "tileweave/kernels/sampling/argmax.h"

#include <algorithm>
#include <limits>

#include "tileweave/kernels/sampling/argmax_args.h"
#include "tileweave/kernels/sampling/node_check.h"

namespace tileweave {
namespace {

void check(const ArgmaxOptions& options, const Tensor& logits, const Tensor& ids) {
  const NodeCheck check("make argmax node `" + options.name + "`");
  check.matrix(logits);
  check.type(logits, DType::kF32);
  check.type(ids, DType::kI32);
  check.shape(ids, {logits.spec.shape[0]});
  check.result(ids);
  check.at_least(options.tile_m, 1, "tile_m");
  check.at_least(options.tile_n, 1, "tile_n");
  check.at_least(options.num_blocks, 0, "num_blocks");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  check.need(logits.spec.shape[1] <= kMost,
             NodeCheck::quoted(logits) + " must have fewer than 2^31 columns",
             std::to_string(logits.spec.shape[1]));
  const std::int64_t tiles_m = ceil_div(logits.spec.shape[0], options.tile_m);
  const std::int64_t tiles_n = ceil_div(logits.spec.shape[1], options.tile_n);
  check.need(tiles_m <= kMost / tiles_n, "tiles must be large enough for fewer than 2^31 works",
             std::to_string(tiles_m) + " x " + std::to_string(tiles_n));
}

Cost cost_of(const ArgmaxArgs& shape, double ticks) {
  return {.per_work = ticks, .of_work = [shape, ticks](std::int64_t work) {
            const std::int64_t row = shape.row_tile(work) * shape.tile_m;
            const std::int64_t col = shape.col_tile(work) * shape.tile_n;
            const std::int64_t elements =
                std::min(shape.tile_m, shape.rows - row) * std::min(shape.tile_n, shape.cols - col);
            return ticks * static_cast<double>(elements) /
                   static_cast<double>(shape.tile_m * shape.tile_n);
          }};
}

}  // namespace

std::int64_t argmax_tile_n(std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kWorks = 128, kColumnsOfLoad = 4 * kArgmaxThreads;
  const std::int64_t equal_share = ceil_div(rows * cols, kWorks);
  return std::max<std::int64_t>(2, ceil_div(equal_share, kColumnsOfLoad)) * kColumnsOfLoad;
}

NodeSpec argmax(const TensorTable& tensors, const ArgmaxOptions& options, TensorId logits,
                TensorId ids) {
  check(options, tensors[logits], tensors[ids]);
  const Shape shape = tensors[logits].spec.shape;
  ArgmaxArgs args{.logits = {},
                  .ids = {},
                  .parts = nullptr,
                  .rows = shape[0],
                  .cols = shape[1],
                  .tile_m = std::min(options.tile_m, shape[0]),
                  .tile_n = std::min(options.tile_n, shape[1]),
                  .num_blocks = 0};
  const std::int64_t works = args.num_works();
  args.num_blocks = options.num_blocks == 0 ? works : std::min(options.num_blocks, works);
  const std::int64_t splits = args.tiles_n();

  NodeSpec node{
      .name = options.name,
      .kernel = kArgmaxKernel,
      .num_works = works,
      .num_blocks = args.num_blocks,
      .order = options.order,
      .operands = {{.tensor = logits,
                    .kernel_tiles = TileSet::plain({shape, {args.tile_m, args.tile_n}}),
                    .sync_slot = ArgmaxOperands::kSlotLogits},
                   {.tensor = ids,
                    .access = Access::kWrite,
                    .reduction = splits == 1 ? Reduction::kNone : Reduction::kLastArriver,
                    .kernel_tiles = TileSet::plain({{shape[0]}, {args.tile_m}}),
                    .tiles_of_work =
                        [splits](std::int64_t work) { return std::vector{work / splits}; },
                    .sync_slot = ArgmaxOperands::kSlotIds}},
      .resources = kArgmaxResources,
      .cost = options.cost.value_or(cost_of(args, options.cost_of_tile)),
      .edge = options.edge};
  if (splits > 1) {
    node.scratch_bytes = static_cast<std::size_t>(works * args.tile_m) * sizeof(ArgmaxPart);
    node.counter.arrivals.assign(static_cast<std::size_t>(works / splits),
                                 static_cast<std::uint32_t>(splits));
  }
  node.make_args = [args](const Addresses& at) {
    ArgmaxArgs placed = args;
    placed.logits = {static_cast<const float*>(at.operands[ArgmaxOperands::kLogits])};
    placed.ids = {static_cast<std::int32_t*>(at.operands[ArgmaxOperands::kIds])};
    placed.parts = static_cast<ArgmaxPart*>(at.scratch);
    return to_bytes(placed);
  };
  return node;
}

}  // namespace tileweave

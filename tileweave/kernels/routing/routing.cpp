#include "tileweave/kernels/routing/routing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/kernels/routing/routing_args.h"

namespace tileweave {
namespace {

using Operands = RoutingOperands;

class NodeCheck {
 public:
  NodeCheck(const TensorTable& tensors, std::string operation)
      : tensors_(tensors), operation_(std::move(operation)) {}

  void need(bool holds, const std::string& expected, const std::string& got) const {
    if (!holds) throw Error(operation_, expected, got);
  }
  const TensorSpec& tensor(TensorId id, DType type, const Shape& shape) const {
    const TensorSpec& spec = tensors_[id].spec;
    need(spec.dtype == type, "`" + spec.name + "` must be " + name_of(type), name_of(spec.dtype));
    need(spec.shape == shape, "`" + spec.name + "` must be " + to_string(shape),
         to_string(spec.shape));
    return spec;
  }
  void result(TensorId id, DType type, const Shape& shape) const {
    const TensorSpec& spec = tensor(id, type, shape);
    need(spec.kind != TensorKind::kConstant, "the result `" + spec.name + "` must not be constant",
         "a constant");
  }
  void constant(TensorId id, DType type, const Shape& shape) const {
    if (id == kNoTensor) return;
    const TensorSpec& spec = tensor(id, type, shape);
    need(spec.kind == TensorKind::kConstant, "`" + spec.name + "` must be constant",
         name_of(spec.kind));
  }
  const std::string& operation() const { return operation_; }

 private:
  const TensorTable& tensors_;
  const std::string operation_;
};

void check_node(const TensorTable& tensors, const RoutingOptions& options,
                const RoutingTensors& at) {
  const NodeCheck check_of(tensors, "make routing node `" + options.name + "`");
  const TensorSpec& logits = tensors[at.logits].spec;
  check_of.need(logits.shape.num_axes == 2, "`" + logits.name + "` must be a matrix",
                "shape " + to_string(logits.shape));
  check_of.tensor(at.logits, DType::kF32, logits.shape);
  const std::int64_t rows = logits.shape[0], experts = logits.shape[1];
  check(options.rule, experts, check_of.operation());
  check_of.result(at.ids, DType::kI32, {rows, options.rule.top_k});
  check_of.result(at.weights, DType::kF32, {rows, options.rule.top_k});
  check_of.constant(at.bias, DType::kF32, {experts});
  check_of.constant(at.sequences, DType::kI32, {rows});
  const auto at_least = [&](std::int64_t value, std::int64_t least, const char* what) {
    check_of.need(value >= least, std::string(what) + " must be at least " + std::to_string(least),
                  std::to_string(value));
  };
  at_least(options.tile_m, 1, "tile_m");
  at_least(options.num_blocks, 0, "num_blocks");
  const std::int64_t works = ceil_div(rows, options.tile_m);
  check_of.need(works <= std::numeric_limits<std::int32_t>::max(),
                "tile_m must be large enough for fewer than 2^31 works", std::to_string(works));
}

Cost cost_of(std::int64_t rows, std::int64_t tile_m, double ticks) {
  return {.per_work = ticks, .of_work = [=](std::int64_t work) {
            return ticks * static_cast<double>(std::min(tile_m, rows - work * tile_m)) /
                   static_cast<double>(tile_m);
          }};
}

}  // namespace

void check(const RoutingRule& rule, std::int64_t num_experts, const std::string& operation) {
  const auto need = [&](bool holds, const std::string& expected, std::int64_t got) {
    if (!holds) throw Error(operation, expected, std::to_string(got));
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  need(num_experts >= 1 && num_experts <= kMost, "1 to 2^20 experts", num_experts);
  need(rule.top_k >= 1 && rule.top_k <= num_experts,
       "a top k of 1 to " + std::to_string(num_experts) + ", the number of experts", rule.top_k);
  need(rule.num_groups >= 1 && num_experts % rule.num_groups == 0,
       "a number of groups that divides " + std::to_string(num_experts) + " experts",
       rule.num_groups);
  need(rule.top_groups >= 1 && rule.top_groups <= rule.num_groups,
       "1 to " + std::to_string(rule.num_groups) + " groups to stay", rule.top_groups);
  const std::int64_t group = num_experts / rule.num_groups;
  need(rule.num_groups == 1 || group >= 2, "at least two experts in a group", group);
  need(rule.top_k <= group * rule.top_groups,
       "a top k of at most " + std::to_string(group * rule.top_groups) +
           ", the experts of the groups that stay",
       rule.top_k);
  if (!std::isfinite(rule.scale) || !(rule.epsilon >= 0) || !std::isfinite(rule.epsilon)) {
    throw Error(operation, "a finite scale and an epsilon of at least 0",
                std::to_string(rule.scale) + " and " + std::to_string(rule.epsilon));
  }
}

NodeSpec routing(const TensorTable& tensors, const RoutingOptions& options,
                 const RoutingTensors& at) {
  check_node(tensors, options, at);
  const Shape shape = tensors[at.logits].spec.shape;
  const std::int64_t k = options.rule.top_k;
  RoutingArgs args{};
  args.rule = options.rule;
  args.rows = shape[0];
  args.experts = shape[1];
  args.tile_m = std::min(options.tile_m, args.rows);
  const std::int64_t works = args.num_works();
  args.num_blocks = options.num_blocks == 0 ? works : std::min(options.num_blocks, works);
  args.bias_operand = args.sequences_operand = -1;

  const TileSet results = TileSet::plain({{args.rows, k}, {args.tile_m, k}});
  NodeSpec node{
      .name = options.name,
      .kernel = kRoutingKernel,
      .num_works = works,
      .num_blocks = args.num_blocks,
      .order = options.order,
      .operands = {{.tensor = at.logits,
                    .kernel_tiles = TileSet::plain({shape, {args.tile_m, args.experts}}),
                    .sync_slot = Operands::kSlotLogits},
                   {.tensor = at.ids,
                    .access = Access::kWrite,
                    .kernel_tiles = results,
                    .sync_slot = Operands::kSlotIds},
                   {.tensor = at.weights,
                    .access = Access::kWrite,
                    .kernel_tiles = results,
                    .sync_slot = Operands::kSlotWeights}},
      .resources = kRoutingResources,
      .cost = options.cost.value_or(cost_of(args.rows, args.tile_m, options.cost_of_tile)),
      .edge = options.edge};
  if (at.bias != kNoTensor) {
    args.bias_operand = static_cast<std::int32_t>(node.operands.size());
    node.operands.push_back(
        {.tensor = at.bias,
         .when = ReadTime::kPrologue,
         .kernel_tiles = TileSet::plain({{args.experts}, {args.experts}}),
         .tiles_of_work = [](std::int64_t /*work*/) { return std::vector<std::int64_t>{0}; }});
  }
  if (at.sequences != kNoTensor) {
    args.sequences_operand = static_cast<std::int32_t>(node.operands.size());
    node.operands.push_back({.tensor = at.sequences,
                             .when = ReadTime::kPrologue,
                             .kernel_tiles = TileSet::plain({{args.rows}, {args.tile_m}})});
  }
  node.make_args = [args](const Addresses& addresses) {
    const auto address = [&](std::int32_t operand) -> void* {
      return operand < 0 ? nullptr : addresses.operands[static_cast<std::size_t>(operand)];
    };
    RoutingArgs placed = args;
    placed.logits = {static_cast<const float*>(address(Operands::kLogits))};
    placed.ids = {static_cast<std::int32_t*>(address(Operands::kIds))};
    placed.weights = {static_cast<float*>(address(Operands::kWeights))};
    placed.bias = {static_cast<const float*>(address(args.bias_operand))};
    placed.sequences = {static_cast<const std::int32_t*>(address(args.sequences_operand))};
    return to_bytes(placed);
  };
  return node;
}

void add_routing(Device& device) {
  require(device.name() == "cpu", "add the routing operator", "the cpu device",
          "`" + device.name() + "`: the routing operator has no CUDA implementation yet");
  add_routing_cpu(device.kernels());
}

}  // namespace tileweave

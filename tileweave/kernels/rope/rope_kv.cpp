#include "tileweave/kernels/rope/rope_kv.h"

#include <algorithm>
#include <vector>

#include "tileweave/core/format.h"
#include "tileweave/kernels/rope/rope_kv_args.h"
#include "tileweave/plan/node_check.h"

namespace tileweave {
namespace {

using Operands = RopeKvOperands;

void check_options(const NodeCheck& check, const RopeKvOptions& options) {
  check.at_least(options.heads, 1, "heads");
  check.at_least(options.kv_heads, 1, "kv_heads");
  check.at_least(options.pool_rows, 0, "pool_rows");
  check.at_least(options.tile_m, 1, "tile_m");
  check.at_least(options.tile_kv_heads, 0, "tile_kv_heads");
  check.at_least(options.num_blocks, 0, "num_blocks");
  check.need(options.heads % options.kv_heads == 0,
             "heads must be a multiple of kv_heads " + std::to_string(options.kv_heads),
             std::to_string(options.heads));
  check.finite_and_positive(options.attention_factor, "attention_factor");
  check.finite_and_not_negative(options.eps, "eps");
}

void check_tensor(const NodeCheck& check, const TensorSpec& t, const Shape& shape, DType dtype) {
  check.shape(t, shape);
  check.type(t, {dtype});
}

void check_norms(const NodeCheck& check, const TensorTable& tensors, const RopeKvTensors& operands,
                 std::int64_t head_dim) {
  check.need((operands.q_norm == kNoTensor) == (operands.k_norm == kNoTensor),
             "q_norm and k_norm must come together", "one of them");
  if (operands.q_norm == kNoTensor) return;
  const TensorSpec& q_norm = tensors[operands.q_norm].spec;
  check.type(q_norm, {DType::kF32, DType::kBF16, DType::kF16});
  for (const TensorId id : {operands.q_norm, operands.k_norm}) {
    check_tensor(check, tensors[id].spec, {head_dim}, q_norm.dtype);
    check.constant(tensors[id].spec);
  }
}

/// Throws unless the tensors fit together; returns head_dim.
std::int64_t check_tensors(const NodeCheck& check, const RopeKvOptions& options,
                           const TensorTable& tensors, const RopeKvTensors& operands) {
  const TensorSpec& qkv = tensors[operands.qkv].spec;
  const std::int64_t all_heads = options.heads + 2 * options.kv_heads;
  check.need(qkv.shape.num_axes == 2 && qkv.shape[1] % (2 * all_heads) == 0,
             "`" + qkv.name + "` must be (T, " + std::to_string(all_heads) +
                 " head_dim) with an even head_dim",
             to_string(qkv.shape));
  const std::int64_t rows = qkv.shape[0];
  const std::int64_t head_dim = qkv.shape[1] / all_heads;
  check.type(qkv, {DType::kF32});
  check_tensor(check, tensors[operands.positions].spec, {rows}, DType::kI32);
  check_tensor(check, tensors[operands.slots].spec, {rows}, DType::kI32);
  check_tensor(check, tensors[operands.inv_freq].spec, {head_dim / 2}, DType::kF32);
  for (const TensorId id : {operands.positions, operands.slots, operands.inv_freq}) {
    check.constant(tensors[id].spec);
  }
  const TensorSpec& q = tensors[operands.q].spec;
  check.shape(q, {rows, options.heads * head_dim});
  check.type(q, {DType::kF32, DType::kBF16});
  for (const TensorId id : {operands.k_step, operands.v_step}) {
    const TensorSpec& t = tensors[id].spec;
    check_tensor(check, t, {rows, options.kv_heads * head_dim}, q.dtype);
    check.need(options.pool_rows > 0 || t.address == nullptr,
               "pool_rows must say how many rows lie at the address of `" + t.name + "`", "0");
    check.need(options.pool_rows == 0 || options.pool_rows == rows || t.address != nullptr,
               "`" + t.name + "` must have the address of a pool of " +
                   std::to_string(options.pool_rows) + " rows",
               "none");
  }
  for (const TensorId id : {operands.q, operands.k_step, operands.v_step}) {
    const TensorSpec& t = tensors[id].spec;
    check.result(t);
    check.need(id != operands.qkv, "the results must be other values than qkv",
               "`" + t.name + "` as both");
  }
  check.need(operands.q != operands.k_step && operands.q != operands.v_step &&
                 operands.k_step != operands.v_step,
             "q, k_step and v_step must be three values", "one of them twice");
  check_norms(check, tensors, operands, head_dim);
  return head_dim;
}

OperandSpec constant(TensorId id) {
  return {.tensor = id, .when = ReadTime::kPrologue};
}

OperandSpec result(TensorId id, const RopeKvSchedule& s, std::int64_t heads_per_kv,
                   std::int32_t slot) {
  const std::int64_t cols = heads_per_kv * s.head_dim;
  return {.tensor = id,
          .access = Access::kWrite,
          .kernel_tiles =
              TileSet::plain({{s.rows, s.kv_heads * cols}, {s.tile_m, s.tile_kv_heads * cols}}),
          .sync_slot = slot};
}

std::vector<OperandSpec> operand_specs(const RopeKvTensors& operands, const RopeKvSchedule& s) {
  const Tiling units{{s.rows, s.all_heads() * s.head_dim}, {s.tile_m, s.unit_heads() * s.head_dim}};
  std::vector<OperandSpec> specs = {
      {.tensor = operands.qkv,
       .kernel_tiles = TileSet::plain(units),
       .tiles_of_work =
           [s](std::int64_t work) {
             const Coord tile = s.tile(work);
             std::vector<std::int64_t> tiles;
             for (std::int64_t i = 0; i < s.num_units(tile); ++i) {
               tiles.push_back(tile[0] * s.units_per_row() + s.unit(tile, i));
             }
             return tiles;
           },
       .sync_slot = Operands::kSyncQkv},
      constant(operands.positions),
      constant(operands.slots),
      constant(operands.inv_freq),
      result(operands.q, s, s.queries_per_kv(), Operands::kSyncQ),
      result(operands.k_step, s, 1, Operands::kSyncK),
      result(operands.v_step, s, 1, Operands::kSyncV)};
  if (operands.q_norm != kNoTensor) {
    specs.push_back(constant(operands.q_norm));
    specs.push_back(constant(operands.k_norm));
  }
  return specs;
}

template <class W, class T>
std::vector<std::byte> args_of(const RopeKvOptions& options, const RopeKvSchedule& s,
                               std::int64_t num_blocks, const Addresses& at) {
  const auto input = [&]<class E>(E, int operand) {
    const auto i = static_cast<std::size_t>(operand);
    return i < at.operands.size() ? static_cast<const E*>(at.operands[i]) : nullptr;
  };
  const auto output = [&](int operand) {
    return static_cast<T*>(at.operands[static_cast<std::size_t>(operand)]);
  };
  return to_bytes(RopeKvArgs<W, T>{.qkv = {input(float{}, Operands::kQkv)},
                                   .positions = {input(std::int32_t{}, Operands::kPositions)},
                                   .slots = {input(std::int32_t{}, Operands::kSlots)},
                                   .inv_freq = {input(float{}, Operands::kInvFreq)},
                                   .q_norm = {input(W{}, Operands::kQNorm)},
                                   .k_norm = {input(W{}, Operands::kKNorm)},
                                   .q = {output(Operands::kQ)},
                                   .k = {output(Operands::kK)},
                                   .v = {output(Operands::kV)},
                                   .schedule = s,
                                   .pool_rows = options.pool_rows == 0 ? s.rows : options.pool_rows,
                                   .num_works = s.num_works(),
                                   .num_blocks = num_blocks,
                                   .attention_factor = options.attention_factor,
                                   .eps = options.eps});
}

template <class T>
std::vector<std::byte> args_of(DType weight, const RopeKvOptions& options, const RopeKvSchedule& s,
                               std::int64_t num_blocks, const Addresses& at) {
  if (weight == DType::kF16) return args_of<Float16, T>(options, s, num_blocks, at);
  if (weight == DType::kBF16) return args_of<BFloat16, T>(options, s, num_blocks, at);
  return args_of<float, T>(options, s, num_blocks, at);
}

/// A whole tile costs `ticks`, a ragged one in proportion.
Cost cost_of(const RopeKvSchedule& s, double ticks) {
  return {
      .per_work = ticks, .of_work = [s, ticks](std::int64_t work) {
        const Coord tile = s.tile(work);
        return ticks *
               static_cast<double>((s.end_row(tile) - s.first_row(tile)) * s.num_kv_heads(tile)) /
               static_cast<double>(s.tile_m * s.tile_kv_heads);
      }};
}

}  // namespace

std::string rope_kv_kernel_name(DType weight, DType result) {
  return std::string("rope_kv.") + name_of(weight) + "." + name_of(result);
}

NodeSpec rope_kv(const TensorTable& tensors, const RopeKvOptions& options,
                 const RopeKvTensors& operands) {
  const NodeCheck check("rope_kv", options.name);
  check_options(check, options);
  const std::int64_t head_dim = check_tensors(check, options, tensors, operands);
  const std::int64_t rows = tensors[operands.qkv].spec.shape[0];
  const RopeKvSchedule s{.rows = rows,
                         .heads = options.heads,
                         .kv_heads = options.kv_heads,
                         .head_dim = head_dim,
                         .tile_m = std::min(options.tile_m, rows),
                         .tile_kv_heads = options.tile_kv_heads == 0
                                              ? options.kv_heads
                                              : std::min(options.tile_kv_heads, options.kv_heads)};
  const std::int64_t works = s.num_works();
  check.countable(works);
  const DType weight =
      operands.q_norm == kNoTensor ? DType::kF32 : tensors[operands.q_norm].spec.dtype;
  const DType result = tensors[operands.q].spec.dtype;
  NodeSpec node{.name = options.name,
                .kernel = rope_kv_kernel_name(weight, result),
                .num_works = works,
                .num_blocks = options.num_blocks == 0 ? works : std::min(options.num_blocks, works),
                .order = options.order,
                .operands = operand_specs(operands, s),
                .resources = kRopeKvResources,
                .cost = options.cost.value_or(cost_of(s, options.cost_of_tile)),
                .edge = options.edge};
  node.make_args = [=, blocks = node.num_blocks](const Addresses& at) {
    return result == DType::kBF16 ? args_of<BFloat16>(weight, options, s, blocks, at)
                                  : args_of<float>(weight, options, s, blocks, at);
  };
  return node;
}

}  // namespace tileweave

#include "tileweave/kernels/rope/rope_kv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/kernels/rope/rope_kv_args.h"

namespace tileweave {
namespace {

using Operands = RopeKvOperands;

void need(bool holds, const RopeKvOptions& options, const std::string& expected,
          const std::string& got) {
  if (!holds) throw Error("make rope_kv node `" + options.name + "`", expected, got);
}

void check_options(const RopeKvOptions& options) {
  const auto at_least = [&](std::int64_t value, std::int64_t least, const char* what) {
    need(value >= least, options, std::string(what) + " must be at least " + std::to_string(least),
         std::to_string(value));
  };
  at_least(options.heads, 1, "heads");
  at_least(options.kv_heads, 1, "kv_heads");
  at_least(options.pool_rows, 0, "pool_rows");
  at_least(options.tile_m, 1, "tile_m");
  at_least(options.tile_kv_heads, 0, "tile_kv_heads");
  at_least(options.num_blocks, 0, "num_blocks");
  need(options.heads % options.kv_heads == 0, options,
       "heads must be a multiple of kv_heads " + std::to_string(options.kv_heads),
       std::to_string(options.heads));
  need(std::isfinite(options.attention_factor) && options.attention_factor > 0, options,
       "attention_factor must be finite and positive", std::to_string(options.attention_factor));
  need(std::isfinite(options.eps) && options.eps >= 0, options,
       "eps must be finite and not negative", std::to_string(options.eps));
}

/// Throws unless `t` has this shape and type and, for an operand, is constant.
void check_tensor(const RopeKvOptions& options, const TensorSpec& t, const Shape& shape,
                  DType dtype) {
  need(t.shape == shape, options, "`" + t.name + "` must be " + to_string(shape),
       to_string(t.shape));
  need(t.dtype == dtype, options, "`" + t.name + "` must be " + name_of(dtype), name_of(t.dtype));
}

void check_constant(const RopeKvOptions& options, const TensorSpec& t) {
  need(t.kind == TensorKind::kConstant, options, "`" + t.name + "` must be constant",
       name_of(t.kind));
}

void check_norms(const RopeKvOptions& options, const TensorTable& tensors,
                 const RopeKvTensors& operands, std::int64_t head_dim) {
  need((operands.q_norm == kNoTensor) == (operands.k_norm == kNoTensor), options,
       "q_norm and k_norm must come together", "one of them");
  if (operands.q_norm == kNoTensor) return;
  const DType dtype = tensors[operands.q_norm].spec.dtype;
  need(dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16, options,
       "`" + tensors[operands.q_norm].spec.name + "` must be f32, bf16 or f16", name_of(dtype));
  for (const TensorId id : {operands.q_norm, operands.k_norm}) {
    check_tensor(options, tensors[id].spec, {head_dim}, dtype);
    check_constant(options, tensors[id].spec);
  }
}

/// Throws unless the tensors fit together; returns head_dim.
std::int64_t check_tensors(const RopeKvOptions& options, const TensorTable& tensors,
                           const RopeKvTensors& operands) {
  const TensorSpec& qkv = tensors[operands.qkv].spec;
  const std::int64_t all_heads = options.heads + 2 * options.kv_heads;
  need(qkv.shape.num_axes == 2 && qkv.shape[1] % (2 * all_heads) == 0, options,
       "`" + qkv.name + "` must be (T, " + std::to_string(all_heads) +
           " head_dim) with an even head_dim",
       to_string(qkv.shape));
  const std::int64_t rows = qkv.shape[0];
  const std::int64_t head_dim = qkv.shape[1] / all_heads;
  check_tensor(options, qkv, qkv.shape, DType::kF32);
  check_tensor(options, tensors[operands.positions].spec, {rows}, DType::kI32);
  check_tensor(options, tensors[operands.slots].spec, {rows}, DType::kI32);
  check_tensor(options, tensors[operands.inv_freq].spec, {head_dim / 2}, DType::kF32);
  for (const TensorId id : {operands.positions, operands.slots, operands.inv_freq}) {
    check_constant(options, tensors[id].spec);
  }
  const TensorSpec& q = tensors[operands.q].spec;
  const DType result = q.dtype;
  need(result == DType::kF32 || result == DType::kBF16, options,
       "`" + q.name + "` must be f32 or bf16", name_of(result));
  check_tensor(options, q, {rows, options.heads * head_dim}, result);
  for (const TensorId id : {operands.k_step, operands.v_step}) {
    const TensorSpec& t = tensors[id].spec;
    check_tensor(options, t, {rows, options.kv_heads * head_dim}, result);
    need(options.pool_rows > 0 || t.address == nullptr, options,
         "pool_rows must say how many rows lie at the address of `" + t.name + "`", "0");
    need(options.pool_rows == 0 || options.pool_rows == rows || t.address != nullptr, options,
         "`" + t.name + "` must have the address of a pool of " +
             std::to_string(options.pool_rows) + " rows",
         "none");
  }
  for (const TensorId id : {operands.q, operands.k_step, operands.v_step}) {
    const TensorSpec& t = tensors[id].spec;
    need(t.kind != TensorKind::kConstant, options,
         "the result `" + t.name + "` must not be constant", "a constant");
    need(id != operands.qkv, options, "the results must be other values than qkv",
         "`" + t.name + "` as both");
  }
  need(operands.q != operands.k_step && operands.q != operands.v_step &&
           operands.k_step != operands.v_step,
       options, "q, k_step and v_step must be three values", "one of them twice");
  check_norms(options, tensors, operands, head_dim);
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
  check_options(options);
  const std::int64_t head_dim = check_tensors(options, tensors, operands);
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
  need(works <= std::numeric_limits<std::int32_t>::max(), options,
       "the tiles must be large enough for at most 2^31 - 1 of them", std::to_string(works));
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

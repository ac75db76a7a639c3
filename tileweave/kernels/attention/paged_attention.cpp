#include "tileweave/kernels/attention/paged_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/kernels/attention/paged_attention_args.h"

namespace tileweave {
namespace {

using Operands = PagedAttentionOperands;

void need(bool holds, const PagedAttentionOptions& options, const std::string& expected,
          const std::string& got = {}) {
  if (!holds) throw Error("make paged_attention node `" + options.name + "`", expected, got);
}

std::string quoted(const Tensor& tensor) {
  return "`" + tensor.spec.name + "`";
}

void check_type(const PagedAttentionOptions& options, const Tensor& tensor, DType type) {
  need(tensor.spec.dtype == type, options, quoted(tensor) + " must be " + name_of(type),
       name_of(tensor.spec.dtype));
}

void check_shape(const PagedAttentionOptions& options, const Tensor& tensor, const Shape& shape) {
  need(tensor.spec.shape == shape, options, quoted(tensor) + " must be " + to_string(shape),
       to_string(tensor.spec.shape));
}

void check_matrix(const PagedAttentionOptions& options, const Tensor& tensor) {
  need(tensor.spec.shape.num_axes == 2, options, quoted(tensor) + " must be a matrix",
       "shape " + to_string(tensor.spec.shape));
}

void check_kind(const PagedAttentionOptions& options, const Tensor& tensor, TensorKind kind) {
  need(tensor.spec.kind == kind, options, quoted(tensor) + " must be " + name_of(kind),
       name_of(tensor.spec.kind));
}

void check_options(const PagedAttentionOptions& options) {
  need(options.head_dim >= 2 && options.head_dim % 2 == 0, options,
       "head_dim must be even and at least 2", std::to_string(options.head_dim));
  need(options.page_size >= 1, options, "page_size must be at least 1",
       std::to_string(options.page_size));
  need(options.tile_m >= 1, options, "tile_m must be at least 1", std::to_string(options.tile_m));
  need(options.num_blocks >= 0, options, "num_blocks must not be negative",
       std::to_string(options.num_blocks));
  need(options.num_splits >= 0 && options.num_splits <= kAttentionMostSplits, options,
       "num_splits must be from 0 to " + std::to_string(kAttentionMostSplits),
       std::to_string(options.num_splits));
  need(options.prefetch_bytes >= 0, options, "prefetch_bytes must not be negative",
       std::to_string(options.prefetch_bytes));
  need(!options.scale || std::isfinite(*options.scale), options, "scale must be finite",
       std::to_string(options.scale.value_or(0)));
}

/// Rows of the tensors that have one number per row of the step, or per sequence.
void check_numbers(const TensorTable& tensors, const PagedAttentionOptions& options,
                   const PagedAttentionTensors& at, std::int64_t rows) {
  for (const TensorId id :
       {at.positions, at.slots, at.sequence_of_row, at.first_row, at.past, at.page_table}) {
    check_type(options, tensors[id], DType::kI32);
    check_kind(options, tensors[id], TensorKind::kConstant);
  }
  for (const TensorId id : {at.positions, at.slots, at.sequence_of_row}) {
    check_shape(options, tensors[id], {rows});
  }
  const Tensor& table = tensors[at.page_table];
  check_matrix(options, table);
  for (const TensorId id : {at.first_row, at.past}) {
    check_shape(options, tensors[id], {table.spec.shape[0]});
  }
}

/// Rows are copied 16 bytes at a time.
void check_alignment(const std::string& name, const Addresses& at) {
  for (const int operand : {Operands::kQ, Operands::kKStep, Operands::kVStep, Operands::kKPast,
                            Operands::kVPast, Operands::kOut}) {
    const auto address =
        reinterpret_cast<std::uintptr_t>(at.operands[static_cast<std::size_t>(operand)]);
    if (address % 16 == 0) continue;
    throw Error("load paged_attention node `" + name + "`",
                "operand " + std::to_string(operand) + " at a multiple of 16 bytes",
                std::to_string(address % 16) + " bytes past one");
  }
}

/// What the form for bf16 is compiled for.
void check_gpu_form(const PagedAttentionOptions& options, const PagedAttentionSchedule& s) {
  need(is_attention_head_dim(s.head_dim), options,
       "head_dim must be 64, 80, 96 or 128 with bf16 operands", std::to_string(s.head_dim));
  need(s.heads_per_kv() <= kAttentionMaxHeads, options,
       "at most " + std::to_string(kAttentionMaxHeads) +
           " query heads may share a kv head with bf16 operands",
       std::to_string(s.heads_per_kv()));
  need(options.kv_heads_per_work == 1, options, "kv_heads_per_work must be 1 with bf16 operands",
       std::to_string(options.kv_heads_per_work));
}

PagedAttentionSchedule check(const TensorTable& tensors, const PagedAttentionOptions& options,
                             const PagedAttentionTensors& at) {
  check_options(options);
  const Tensor& q = tensors[at.q];
  const Tensor& k = tensors[at.k_step];
  const Tensor& pool = tensors[at.k_past];
  const DType type = pool.spec.dtype;
  need(type == DType::kF32 || type == DType::kBF16, options, quoted(pool) + " must be f32 or bf16",
       name_of(type));
  for (const TensorId id : {at.q, at.k_step, at.v_step, at.k_past, at.v_past, at.out}) {
    check_matrix(options, tensors[id]);
    check_type(options, tensors[id], type);
  }
  PagedAttentionSchedule s{.rows = q.spec.shape[0], .head_dim = options.head_dim};
  for (const Tensor* t : {&q, &k}) {
    need(t->spec.shape[1] % s.head_dim == 0, options,
         quoted(*t) + " must have a multiple of head_dim = " + std::to_string(s.head_dim) +
             " columns",
         std::to_string(t->spec.shape[1]));
  }
  s.heads = q.spec.shape[1] / s.head_dim;
  s.kv_heads = k.spec.shape[1] / s.head_dim;
  need(s.heads % s.kv_heads == 0, options,
       "the query heads of " + quoted(q) + " must be a multiple of the kv heads of " + quoted(k),
       std::to_string(s.heads) + " and " + std::to_string(s.kv_heads));
  check_shape(options, k, {s.rows, s.kv_heads * s.head_dim});
  check_shape(options, tensors[at.v_step], k.spec.shape);
  check_shape(options, tensors[at.out], q.spec.shape);
  need(pool.spec.shape[1] == k.spec.shape[1] && pool.spec.shape[0] % options.page_size == 0,
       options,
       quoted(pool) + " must be (a multiple of page_size = " + std::to_string(options.page_size) +
           ", " + std::to_string(k.spec.shape[1]) + ")",
       to_string(pool.spec.shape));
  check_shape(options, tensors[at.v_past], pool.spec.shape);
  check_kind(options, pool, TensorKind::kState);
  check_kind(options, tensors[at.v_past], TensorKind::kState);
  check_numbers(tensors, options, at, s.rows);
  need(tensors[at.out].spec.kind != TensorKind::kConstant, options,
       "the result " + quoted(tensors[at.out]) + " must not be constant");
  for (const TensorId id : {at.q, at.k_step, at.v_step, at.k_past, at.v_past}) {
    need(at.out != id, options, "the result must be another tensor than the operands",
         quoted(tensors[id]) + " as both");
  }
  need(options.kv_heads_per_work >= 1 && s.kv_heads % options.kv_heads_per_work == 0, options,
       "kv_heads_per_work must divide the " + std::to_string(s.kv_heads) + " kv heads",
       std::to_string(options.kv_heads_per_work));
  s.kv_heads_per_work = options.kv_heads_per_work;
  s.tile_m = std::min(options.tile_m, s.rows);
  if (type == DType::kBF16) {
    check_gpu_form(options, s);
    const Shape table = tensors[at.page_table].spec.shape;
    s.num_splits = options.num_splits == 0
                       ? attention_splits(s.results(), table[1] * options.page_size)
                       : options.num_splits;
  } else {
    need(options.num_splits <= 1, options, "num_splits must be 0 or 1 with f32 operands",
         std::to_string(options.num_splits));
  }
  need(s.tiles() <= std::numeric_limits<std::int32_t>::max() / s.groups() / s.num_splits, options,
       "tile_m must be large enough for fewer than 2^31 works",
       std::to_string(s.tiles()) + " row tiles");
  s.num_blocks =
      options.num_blocks == 0 ? s.num_works() : std::min(options.num_blocks, s.num_works());
  return s;
}

/// This step's keys or values: a work of f32 reads every row tile up to its own, one of bf16 waits
/// once for all rows.
OperandSpec step_operand(TensorId id, const PagedAttentionSchedule& s, DType type,
                         std::int32_t slot) {
  const Shape shape{s.rows, s.kv_heads * s.head_dim};
  if (type == DType::kBF16) {
    return {.tensor = id,
            .kernel_tiles = TileSet::plain({shape, {s.rows, s.kv_columns()}}),
            .tiles_of_work = [s](std::int64_t work) { return std::vector{s.group_of(work)}; },
            .sync_slot = slot};
  }
  return {.tensor = id,
          .kernel_tiles = TileSet::plain({shape, {s.tile_m, s.kv_columns()}}),
          .tiles_of_work =
              [s](std::int64_t work) {
                std::vector<std::int64_t> tiles;
                for (std::int64_t m = 0; m <= s.tile_of(work); ++m) {
                  tiles.push_back(m * s.groups() + s.group_of(work));
                }
                return tiles;
              },
          .sync_slot = slot};
}

OperandSpec past_operand(TensorId id, const Tensor& pool, const PagedAttentionSchedule& s) {
  return {.tensor = id,
          .when = ReadTime::kPrologue,
          .kernel_tiles = TileSet::plain({pool.spec.shape, {pool.spec.shape[0], s.kv_columns()}}),
          .tiles_of_work = [s](std::int64_t work) { return std::vector{s.group_of(work)}; }};
}

Cost cost_of(const PagedAttentionSchedule& s, double ticks) {
  return {.per_work = ticks, .of_work = [s, ticks](std::int64_t work) {
            const std::int64_t m = s.tile_of(work);
            return ticks * static_cast<double>(s.end_row(m) - s.first_row(m)) /
                   static_cast<double>(s.tile_m * s.num_splits);
          }};
}

KernelResources resources_of(const PagedAttentionSchedule& s, DType type) {
  KernelResources resources = kPagedAttentionResources;
  if (type == DType::kBF16) {
    resources.shared_bytes =
        AttentionShared{static_cast<int>(s.head_dim)}.bytes(1, static_cast<int>(s.heads_per_kv()));
  }
  return resources;
}

/// Everything that the addresses do not decide.
struct Numbers {
  PagedAttentionSchedule schedule;
  Shape table;
  std::int64_t page_size, prefetch_bytes;
  float scale;
};

template <class T>
std::vector<std::byte> args_of(const Numbers& n, std::int64_t segments, const Addresses& at) {
  const auto input = [&](int operand) {
    return static_cast<const T*>(at.operands[static_cast<std::size_t>(operand)]);
  };
  const auto i32 = [&](int operand) {
    return static_cast<const std::int32_t*>(at.operands[static_cast<std::size_t>(operand)]);
  };
  return to_bytes(
      PagedAttentionArgs<T>{.q = {input(Operands::kQ)},
                            .k_step = {input(Operands::kKStep)},
                            .v_step = {input(Operands::kVStep)},
                            .k_past = {input(Operands::kKPast)},
                            .v_past = {input(Operands::kVPast)},
                            .positions = {i32(Operands::kPositions)},
                            .slots = {i32(Operands::kSlotsOfRows)},
                            .sequence_of_row = {i32(Operands::kSequenceOfRow)},
                            .first_row = {i32(Operands::kFirstRow)},
                            .past = {i32(Operands::kPast)},
                            .page_table = {i32(Operands::kPageTable)},
                            .out = {static_cast<T*>(at.operands[Operands::kOut])},
                            .schedule = n.schedule,
                            .num_sequences = n.table[0],
                            .max_pages = n.table[1],
                            .page_size = n.page_size,
                            .prefetch_bytes = n.prefetch_bytes,
                            .scale = n.scale,
                            .partials = static_cast<float*>(at.scratch),
                            .segments = segments,
                            .num_works = static_cast<std::int32_t>(n.schedule.num_works()),
                            .results = static_cast<std::int32_t>(n.schedule.results()),
                            .groups = static_cast<std::int32_t>(n.schedule.groups()),
                            .heads_per_kv = static_cast<std::int32_t>(n.schedule.heads_per_kv())});
}

}  // namespace

std::string paged_attention_kernel_name(DType type, std::int64_t head_dim) {
  const std::string name = std::string("paged_attention.") + name_of(type);
  return type == DType::kBF16 ? name + ".d" + std::to_string(head_dim) : name;
}

NodeSpec paged_attention(const TensorTable& tensors, const PagedAttentionOptions& options,
                         const PagedAttentionTensors& at) {
  const PagedAttentionSchedule s = check(tensors, options, at);
  const DType type = tensors[at.k_past].spec.dtype;
  const Shape table = tensors[at.page_table].spec.shape;
  const Shape q_shape{s.rows, s.heads * s.head_dim};
  const TileSet q_tiles = TileSet::plain({q_shape, {s.tile_m, s.q_columns()}});
  const auto result = [s](std::int64_t work) { return std::vector{s.result_of(work)}; };
  const auto number = [](TensorId id) {
    return OperandSpec{.tensor = id, .when = ReadTime::kPrologue};
  };
  NodeSpec node{
      .name = options.name,
      .kernel = paged_attention_kernel_name(type, s.head_dim),
      .num_works = s.num_works(),
      .num_blocks = s.num_blocks,
      .order = options.order,
      .operands = {{.tensor = at.q,
                    .kernel_tiles = q_tiles,
                    .tiles_of_work = result,
                    .sync_slot = Operands::kSlotQ},
                   step_operand(at.k_step, s, type, Operands::kSlotKStep),
                   step_operand(at.v_step, s, type, Operands::kSlotVStep),
                   past_operand(at.k_past, tensors[at.k_past], s),
                   past_operand(at.v_past, tensors[at.v_past], s),
                   number(at.positions),
                   number(at.slots),
                   number(at.sequence_of_row),
                   number(at.first_row),
                   number(at.past),
                   number(at.page_table),
                   {.tensor = at.out,
                    .access = Access::kWrite,
                    .reduction = s.num_splits > 1 ? Reduction::kLastArriver : Reduction::kNone,
                    .kernel_tiles = q_tiles,
                    .tiles_of_work = result,
                    .sync_slot = Operands::kSlotOut}},
      .resources = resources_of(s, type),
      .cost = options.cost.value_or(cost_of(s, options.cost_of_tile)),
      .edge = options.edge};
  const std::int64_t segments =
      AttentionSegments::count(attention_passes(table[1] * options.page_size));
  if (s.num_splits > 1) {
    node.counter.arrivals.assign(static_cast<std::size_t>(s.results()),
                                 static_cast<std::uint32_t>(s.num_splits));
    node.scratch_bytes =
        static_cast<std::size_t>(s.rows * s.kv_heads * segments *
                                 attention_partial_floats(s.heads_per_kv(), s.head_dim)) *
        sizeof(float);
  }
  const Numbers numbers{
      .schedule = s,
      .table = table,
      .page_size = options.page_size,
      .prefetch_bytes = options.prefetch_bytes,
      .scale = options.scale.value_or(1.0F / std::sqrt(static_cast<float>(options.head_dim)))};
  node.make_args = [=](const Addresses& addresses) {
    if (type == DType::kF32) return args_of<float>(numbers, segments, addresses);
    check_alignment(options.name, addresses);
    return args_of<BFloat16>(numbers, segments, addresses);
  };
  return node;
}

}  // namespace tileweave

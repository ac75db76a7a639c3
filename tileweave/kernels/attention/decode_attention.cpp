#include "tileweave/kernels/attention/decode_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/kernels/attention/decode_attention_args.h"

namespace tileweave {
namespace {

using Operands = DecodeAttentionOperands;

constexpr std::int64_t kMostPadding = std::int64_t{1} << 20;  // bytes; no SM has as many

void need(bool holds, const DecodeAttentionOptions& options, const std::string& expected,
          const std::string& got) {
  if (!holds) throw Error("make decode_attention node `" + options.name + "`", expected, got);
}

void check_options(const DecodeAttentionOptions& options) {
  const auto at_least = [&](std::int64_t value, std::int64_t least, const char* what) {
    need(value >= least, options, std::string(what) + " must be at least " + std::to_string(least),
         std::to_string(value));
  };
  at_least(options.heads, 1, "heads");
  at_least(options.kv_heads, 1, "kv_heads");
  at_least(options.pool_rows, 0, "pool_rows");
  at_least(options.page_size, 1, "page_size");
  at_least(options.num_splits, 0, "num_splits");
  at_least(options.num_blocks, 0, "num_blocks");
  at_least(options.buffers, 0, "buffers");
  need(options.buffers <= kAttentionMostBuffers, options,
       "buffers must be at most " + std::to_string(kAttentionMostBuffers),
       std::to_string(options.buffers));
  at_least(options.shared_padding, 0, "shared_padding");
  need(options.shared_padding <= kMostPadding, options,
       "shared_padding must be at most " + std::to_string(kMostPadding),
       std::to_string(options.shared_padding));
  need(options.num_splits <= kAttentionMostSplits, options,
       "num_splits must be at most " + std::to_string(kAttentionMostSplits),
       std::to_string(options.num_splits));
  need(options.heads % options.kv_heads == 0, options,
       "heads must be a multiple of kv_heads " + std::to_string(options.kv_heads),
       std::to_string(options.heads));
  need(!options.scale || std::isfinite(*options.scale), options, "scale must be finite",
       std::to_string(options.scale.value_or(0)));
  need(std::isfinite(options.attention_factor) && options.attention_factor > 0, options,
       "attention_factor must be finite and positive", std::to_string(options.attention_factor));
  need(std::isfinite(options.eps) && options.eps >= 0, options,
       "eps must be finite and not negative", std::to_string(options.eps));
}

void check_tensor(const DecodeAttentionOptions& options, const TensorSpec& t, const Shape& shape,
                  DType dtype) {
  need(t.shape == shape, options, "`" + t.name + "` must be " + to_string(shape),
       to_string(t.shape));
  need(t.dtype == dtype, options, "`" + t.name + "` must be " + name_of(dtype), name_of(t.dtype));
}

void check_kind(const DecodeAttentionOptions& options, const TensorSpec& t, TensorKind kind) {
  need(t.kind == kind, options, "`" + t.name + "` must be " + name_of(kind), name_of(t.kind));
}

void check_norms(const DecodeAttentionOptions& options, const TensorTable& tensors,
                 const DecodeAttentionTensors& at, std::int64_t head_dim) {
  need((at.q_norm == kNoTensor) == (at.k_norm == kNoTensor), options,
       "q_norm and k_norm must come together", "one of them");
  if (at.q_norm == kNoTensor) return;
  const TensorSpec& first = tensors[at.q_norm].spec;
  need(first.dtype == DType::kF32 || first.dtype == DType::kBF16, options,
       "`" + first.name + "` must be f32 or bf16", name_of(first.dtype));
  for (const TensorId id : {at.q_norm, at.k_norm}) {
    check_tensor(options, tensors[id].spec, {head_dim}, first.dtype);
    check_kind(options, tensors[id].spec, TensorKind::kConstant);
  }
}

void check_numbers(const DecodeAttentionOptions& options, const TensorTable& tensors,
                   const DecodeAttentionTensors& at, std::int64_t rows, std::int64_t head_dim) {
  for (const TensorId id : {at.positions, at.slots, at.sequence_of_row}) {
    check_tensor(options, tensors[id].spec, {rows}, DType::kI32);
    check_kind(options, tensors[id].spec, TensorKind::kConstant);
  }
  check_tensor(options, tensors[at.inv_freq].spec, {head_dim / 2}, DType::kF32);
  check_kind(options, tensors[at.inv_freq].spec, TensorKind::kConstant);
  const TensorSpec& table = tensors[at.page_table].spec;
  need(table.shape.num_axes == 2, options, "`" + table.name + "` must be a matrix",
       "shape " + to_string(table.shape));
  check_tensor(options, table, table.shape, DType::kI32);
  check_kind(options, table, TensorKind::kConstant);
}

/// Pool, this step's rows and the result.
void check_rows(const DecodeAttentionOptions& options, const TensorTable& tensors,
                const DecodeAttentionTensors& at, std::int64_t rows, std::int64_t head_dim) {
  const TensorSpec& pool = tensors[at.k_past].spec;
  const std::int64_t columns = options.kv_heads * head_dim;
  need(pool.dtype == DType::kF32 || pool.dtype == DType::kBF16, options,
       "`" + pool.name + "` must be f32 or bf16", name_of(pool.dtype));
  need(pool.shape.num_axes == 2 && pool.shape[1] == columns &&
           pool.shape[0] % options.page_size == 0,
       options,
       "`" + pool.name + "` must be (a multiple of page_size = " +
           std::to_string(options.page_size) + ", " + std::to_string(columns) + ")",
       to_string(pool.shape));
  check_tensor(options, tensors[at.v_past].spec, pool.shape, pool.dtype);
  for (const TensorId id : {at.k_past, at.v_past}) {
    check_kind(options, tensors[id].spec, TensorKind::kState);
  }
  for (const TensorId id : {at.k_step, at.v_step}) {
    const TensorSpec& t = tensors[id].spec;
    check_tensor(options, t, {rows, columns}, pool.dtype);
    need(t.address != nullptr || options.pool_rows == rows, options,
         "`" + t.name + "` must have the address of a pool, or pool_rows must be " +
             std::to_string(rows),
         "no address");
  }
  check_tensor(options, tensors[at.out].spec, {rows, options.heads * head_dim}, pool.dtype);
  for (const TensorId id : {at.k_step, at.v_step, at.out}) {
    need(tensors[id].spec.kind != TensorKind::kConstant, options,
         "the result `" + tensors[id].spec.name + "` must not be constant", "a constant");
  }
  need(at.out != at.k_step && at.out != at.v_step && at.k_step != at.v_step, options,
       "k_step, v_step and out must be three values", "one of them twice");
}

DecodeAttentionSchedule check(const TensorTable& tensors, const DecodeAttentionOptions& options,
                              const DecodeAttentionTensors& at) {
  check_options(options);
  const TensorSpec& qkv = tensors[at.qkv].spec;
  const std::int64_t all_heads = options.heads + 2 * options.kv_heads;
  need(qkv.shape.num_axes == 2 && qkv.shape[1] % (2 * all_heads) == 0, options,
       "`" + qkv.name + "` must be (T, " + std::to_string(all_heads) +
           " head_dim) with an even head_dim",
       to_string(qkv.shape));
  const std::int64_t rows = qkv.shape[0];
  const std::int64_t head_dim = qkv.shape[1] / all_heads;
  const std::int64_t heads_per_kv = options.heads / options.kv_heads;
  check_tensor(options, qkv, qkv.shape, DType::kF32);
  check_rows(options, tensors, at, rows, head_dim);
  check_numbers(options, tensors, at, rows, head_dim);
  check_norms(options, tensors, at, head_dim);

  std::int64_t splits = 1;
  if (tensors[at.k_past].spec.dtype == DType::kBF16) {
    need(is_attention_head_dim(head_dim), options,
         "head_dim must be 64, 80, 96 or 128 with a bf16 pool", std::to_string(head_dim));
    need(heads_per_kv <= kAttentionMaxHeads, options,
         "at most " + std::to_string(kAttentionMaxHeads) +
             " query heads may share a kv head with a bf16 pool",
         std::to_string(heads_per_kv));
    splits = options.num_splits == 0
                 ? attention_splits(rows * options.kv_heads,
                                    tensors[at.page_table].spec.shape[1] * options.page_size)
                 : options.num_splits;
  } else {
    need(options.num_splits <= 1, options, "num_splits must be 0 or 1 with an f32 pool",
         std::to_string(options.num_splits));
  }
  const std::int64_t works = rows * options.kv_heads * splits;
  need(works <= std::numeric_limits<std::int32_t>::max(), options,
       "there must be fewer than 2^31 works", std::to_string(works));
  return {.rows = static_cast<std::int32_t>(rows),
          .kv_heads = static_cast<std::int32_t>(options.kv_heads),
          .heads_per_kv = static_cast<std::int32_t>(heads_per_kv),
          .head_dim = static_cast<std::int32_t>(head_dim),
          .num_splits = static_cast<std::int32_t>(splits),
          .num_blocks = static_cast<std::int32_t>(
              options.num_blocks == 0 ? works : std::min(options.num_blocks, works))};
}

std::vector<OperandSpec> operand_specs(const TensorTable& tensors, const DecodeAttentionTensors& at,
                                       const DecodeAttentionSchedule& s) {
  const auto row = [s](std::int64_t work) {
    return std::vector<std::int64_t>{s.row_of(static_cast<std::uint32_t>(work))};
  };
  const auto result = [s](std::int64_t work) {
    return std::vector<std::int64_t>{s.result_of(static_cast<std::uint32_t>(work))};
  };
  const auto first_split = [s](std::int64_t work) {
    std::vector<std::int64_t> tiles;
    if (work < s.results()) tiles.push_back(work);
    return tiles;
  };
  const auto constant = [](TensorId id) {
    return OperandSpec{.tensor = id, .when = ReadTime::kPrologue};
  };
  const auto past = [&](TensorId id) {
    const Shape pool = tensors[id].spec.shape;
    return OperandSpec{
        .tensor = id,
        .when = ReadTime::kPrologue,
        .kernel_tiles = TileSet::plain({pool, {pool[0], s.head_dim}}),
        .tiles_of_work = [s](std::int64_t work) {
          return std::vector<std::int64_t>{s.group_of(static_cast<std::uint32_t>(work))};
        }};
  };
  const auto written = [&](TensorId id, std::int64_t columns, std::int32_t slot, auto tiles_of_work,
                           Reduction reduction) {
    return OperandSpec{.tensor = id,
                       .access = Access::kWrite,
                       .reduction = reduction,
                       .kernel_tiles = TileSet::plain({tensors[id].spec.shape, {1, columns}}),
                       .tiles_of_work = tiles_of_work,
                       .sync_slot = slot};
  };
  const Shape qkv = tensors[at.qkv].spec.shape;
  std::vector<OperandSpec> specs = {
      {.tensor = at.qkv,
       .kernel_tiles = TileSet::plain({qkv, {1, qkv[1]}}),
       .tiles_of_work = row,
       .sync_slot = Operands::kSlotQkv},
      constant(at.positions),
      constant(at.slots),
      constant(at.sequence_of_row),
      constant(at.page_table),
      constant(at.inv_freq),
      past(at.k_past),
      past(at.v_past),
      written(at.k_step, s.head_dim, Operands::kSlotKStep, first_split, Reduction::kNone),
      written(at.v_step, s.head_dim, Operands::kSlotVStep, first_split, Reduction::kNone),
      written(at.out, std::int64_t{s.heads_per_kv} * s.head_dim, Operands::kSlotOut, result,
              s.num_splits > 1 ? Reduction::kLastArriver : Reduction::kNone)};
  if (at.q_norm != kNoTensor) {
    specs.push_back(constant(at.q_norm));
    specs.push_back(constant(at.k_norm));
  }
  return specs;
}

/// Everything that the addresses do not decide.
struct Numbers {
  DecodeAttentionSchedule schedule;
  std::int32_t num_sequences, max_pages, page_size, pool_rows;
  float scale, attention_factor, eps;
  std::int32_t segments, buffers;
};

template <class T, class W>
std::vector<std::byte> args_of(const Numbers& n, const Addresses& at) {
  const auto input = [&]<class E>(E, int operand) {
    const auto i = static_cast<std::size_t>(operand);
    return i < at.operands.size() ? static_cast<const E*>(at.operands[i]) : nullptr;
  };
  const auto output = [&](int operand) {
    return static_cast<T*>(at.operands[static_cast<std::size_t>(operand)]);
  };
  return to_bytes(DecodeAttentionArgs<T, W>{
      .qkv = {input(float{}, Operands::kQkv)},
      .positions = {input(std::int32_t{}, Operands::kPositions)},
      .slots = {input(std::int32_t{}, Operands::kSlotsOfRows)},
      .sequence_of_row = {input(std::int32_t{}, Operands::kSequenceOfRow)},
      .page_table = {input(std::int32_t{}, Operands::kPageTable)},
      .inv_freq = {input(float{}, Operands::kInvFreq)},
      .k_past = {input(T{}, Operands::kKPast)},
      .v_past = {input(T{}, Operands::kVPast)},
      .q_norm = {input(W{}, Operands::kQNorm)},
      .k_norm = {input(W{}, Operands::kKNorm)},
      .k_step = {output(Operands::kKStep)},
      .v_step = {output(Operands::kVStep)},
      .out = {output(Operands::kOut)},
      .schedule = n.schedule,
      .num_sequences = n.num_sequences,
      .max_pages = n.max_pages,
      .page_size = n.page_size,
      .pool_rows = n.pool_rows,
      .scale = n.scale,
      .attention_factor = n.attention_factor,
      .eps = n.eps,
      .segments = n.segments,
      .buffers = n.buffers,
      .partials = static_cast<float*>(at.scratch)});
}

/// Rows of the pool are copied 16 bytes at a time, those of qkv read 8 at a time.
void check_alignment(const std::string& name, const Addresses& at) {
  for (const int operand : {Operands::kQkv, Operands::kInvFreq, Operands::kKPast, Operands::kVPast,
                            Operands::kKStep, Operands::kVStep, Operands::kOut}) {
    const auto address =
        reinterpret_cast<std::uintptr_t>(at.operands[static_cast<std::size_t>(operand)]);
    if (address % 16 == 0) continue;
    throw Error("load decode_attention node `" + name + "`",
                "operand " + std::to_string(operand) + " at a multiple of 16 bytes",
                std::to_string(address % 16) + " bytes past one");
  }
}

/// Two passes are fetched at once where a block has an SM of its own; otherwise several blocks of
/// an SM fetch one each.
std::int32_t buffers_of(const DecodeAttentionOptions& options, const DecodeAttentionSchedule& s) {
  if (options.buffers != 0) return static_cast<std::int32_t>(options.buffers);
  const bool two_fit =
      AttentionShared{s.head_dim}.bytes(2, s.heads_per_kv) + options.shared_padding <=
      options.shared_limit;
  return two_fit && s.num_blocks <= kAttentionSms ? 2 : 1;
}

KernelResources resources_of(const DecodeAttentionOptions& options, const Numbers& n, DType type) {
  KernelResources resources = kDecodeAttentionResources;
  if (type == DType::kBF16) {
    resources.shared_bytes =
        AttentionShared{n.schedule.head_dim}.bytes(n.buffers, n.schedule.heads_per_kv);
  }
  resources.shared_bytes += options.shared_padding;
  return resources;
}

}  // namespace

std::string decode_attention_kernel_name(DType type, DType weight, std::int64_t head_dim) {
  const std::string name = std::string("decode_attention.") + name_of(type) + "." + name_of(weight);
  return type == DType::kBF16 ? name + ".d" + std::to_string(head_dim) : name;
}

NodeSpec decode_attention(const TensorTable& tensors, const DecodeAttentionOptions& options,
                          const DecodeAttentionTensors& at) {
  const DecodeAttentionSchedule s = check(tensors, options, at);
  const Tensor& pool = tensors[at.k_past];
  const DType type = pool.spec.dtype;
  const DType weight = at.q_norm == kNoTensor ? DType::kF32 : tensors[at.q_norm].spec.dtype;
  const Shape table = tensors[at.page_table].spec.shape;
  const std::int64_t pool_rows = options.pool_rows == 0 ? pool.spec.shape[0] : options.pool_rows;
  const Numbers numbers{
      .schedule = s,
      .num_sequences = static_cast<std::int32_t>(table[0]),
      .max_pages = static_cast<std::int32_t>(table[1]),
      .page_size = static_cast<std::int32_t>(options.page_size),
      .pool_rows = static_cast<std::int32_t>(pool_rows),
      .scale = options.scale.value_or(1.0F / std::sqrt(static_cast<float>(s.head_dim))),
      .attention_factor = options.attention_factor,
      .eps = options.eps,
      .segments = AttentionSegments::count(attention_passes(table[1] * options.page_size)),
      .buffers = buffers_of(options, s)};
  NodeSpec node{.name = options.name,
                .kernel = decode_attention_kernel_name(type, weight, s.head_dim),
                .num_works = s.num_works(),
                .num_blocks = s.num_blocks,
                .order = options.order,
                .operands = operand_specs(tensors, at, s),
                .resources = resources_of(options, numbers, type),
                .cost = options.cost.value_or(Cost{.per_work = options.cost_of_work}),
                .edge = options.edge};
  if (s.num_splits > 1) {
    node.counter.arrivals.assign(static_cast<std::size_t>(s.results()),
                                 static_cast<std::uint32_t>(s.num_splits));
    node.scratch_bytes =
        static_cast<std::size_t>(std::int64_t{s.results()} * numbers.segments *
                                 attention_partial_floats(s.heads_per_kv, s.head_dim)) *
        sizeof(float);
  }
  node.make_args = [=, name = options.name](const Addresses& addresses) {
    const bool norm16 = weight == DType::kBF16;
    if (type == DType::kF32) {
      return norm16 ? args_of<float, BFloat16>(numbers, addresses)
                    : args_of<float, float>(numbers, addresses);
    }
    check_alignment(name, addresses);
    return norm16 ? args_of<BFloat16, BFloat16>(numbers, addresses)
                  : args_of<BFloat16, float>(numbers, addresses);
  };
  return node;
}

}  // namespace tileweave

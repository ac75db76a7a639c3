#include "tileweave/kernels/gemm/skinny_gemm.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/kernels/gemm/packed_product_check.h"
#include "tileweave/kernels/gemm/skinny_gemm_args.h"

namespace tileweave {
namespace {

constexpr std::int64_t kMostPadding = std::int64_t{1} << 20;

void need(bool holds, const SkinnyGemmOptions& options, const std::string& expected,
          const std::string& got) {
  if (!holds) throw Error("make skinny_gemm node `" + options.name + "`", expected, got);
}

void check_operands(const TensorTable& tensors, const SkinnyGemmOptions& options,
                    const SkinnyGemmTensors& operands) {
  const NodeCheck check("skinny_gemm", options.name);
  check_packed_product(check, tensors,
                       {.x = operands.x,
                        .w = operands.w,
                        .y = operands.y,
                        .residual = operands.residual,
                        .bias = operands.bias,
                        .gated = options.gated,
                        .most_rows = kSkinnyMostRows});
  const TensorSpec& x = tensors[operands.x].spec;
  if (operands.norm_weight == kNoTensor) {
    check.type(x, {DType::kBF16});
    return;
  }
  check.need(x.dtype == DType::kF32, "`" + x.name + "` must be f32, to be normed here",
             name_of(x.dtype));
  const TensorSpec& weight = tensors[operands.norm_weight].spec;
  check.shape(weight, {x.shape[1]});
  check.constant(weight);
  check.type(weight, {DType::kF32, DType::kBF16});
}

/// Parts of K whose sums are added up first. Up to 16 rows it follows from K alone.
std::int64_t span_parts(std::int64_t m, std::int64_t k) {
  constexpr std::int64_t kSpans = 4;      // few partial sums to add up where K is split,
  constexpr std::int64_t kMostParts = 4;  // but 16 rows of a span's columns must fit a block
  return m <= 16 ? std::min(kMostParts, ceil_div(ceil_div(k, kPartColumns), kSpans)) : 1;
}

std::int64_t num_spans(std::int64_t m, std::int64_t k) {
  return ceil_div(ceil_div(k, kPartColumns), span_parts(m, k));
}

void check_options(const SkinnyGemmOptions& options, std::int64_t m, std::int64_t k) {
  need(options.strips_per_work >= 1 && options.strips_per_work <= kMostProductSize &&
           (!options.gated || options.strips_per_work % 2 == 0),
       options,
       options.gated ? "strips_per_work must be even where gated"
                     : "strips_per_work must be at least 1",
       std::to_string(options.strips_per_work));
  const std::int64_t spans = num_spans(m, k);
  need(options.split_k >= 1 && options.split_k <= spans, options,
       "split_k must be between 1 and the " + std::to_string(spans) + " spans of K",
       std::to_string(options.split_k));
  need(options.stages >= 1 && options.stages <= kMostStages, options,
       "stages must be between 1 and " + std::to_string(kMostStages),
       std::to_string(options.stages));
  need(options.window >= 1, options, "window must be at least 1", std::to_string(options.window));
  need(options.wait_k >= 0 && options.wait_k % kPartColumns == 0, options,
       "wait_k must be a multiple of " + std::to_string(kPartColumns),
       std::to_string(options.wait_k));
  need(options.shared_padding >= 0 && options.shared_padding <= kMostPadding, options,
       "shared_padding must be between 0 and " + std::to_string(kMostPadding),
       std::to_string(options.shared_padding));
  need(std::isfinite(options.eps) && options.eps >= 0, options,
       "eps must be finite and not negative", std::to_string(options.eps));
}

PackedLayout layout_of(std::int64_t n, std::int64_t k, const SkinnyGemmOptions& options) {
  return {.n = n, .k = k, .order = options.gated ? StripOrder::kPaired : StripOrder::kRows};
}

SkinnyGemmSchedule schedule_of(std::int64_t m, std::int64_t n, std::int64_t k,
                               const SkinnyGemmOptions& options) {
  const PackedLayout layout = layout_of(n, k, options);
  return {.m = static_cast<std::int32_t>(m),
          .n = static_cast<std::int32_t>(n),
          .k = static_cast<std::int32_t>(k),
          .num_strips = static_cast<std::int32_t>(layout.num_strips()),
          .strips_per_work =
              static_cast<std::int32_t>(std::min(options.strips_per_work, layout.num_strips())),
          .split_k = static_cast<std::int32_t>(options.split_k),
          .wait_k = static_cast<std::int32_t>(options.wait_k >= k ? 0 : options.wait_k),
          .span_parts = static_cast<std::int32_t>(span_parts(m, k)),
          .gated = options.gated};
}

/// Everything but the ring, which comes first.
SkinnyGemmShared shared_of(const SkinnyGemmSchedule& s, std::int64_t stages, bool portable,
                           std::int64_t norm_bytes) {
  const auto up = [](std::int64_t bytes) { return static_cast<int>(ceil_div(bytes, 128) * 128); };
  SkinnyGemmShared shared;
  shared.x = static_cast<int>(stages) * kStageBytes;
  shared.x_stride = static_cast<int>(ceil_div(s.most_k(), 32)) * 64 + 16;
  shared.zeros = shared.x + up(std::int64_t{s.m} * shared.x_stride);
  shared.partial = shared.zeros + 128;
  shared.norm = shared.partial + up(std::int64_t{sum_buffers(s.m)} * parts_per_meet(s) *
                                    kSkinnyWarps * 16 * sum_columns(s.m) * 4);
  shared.squares = shared.norm + up(norm_bytes);
  shared.barriers = shared.squares + (norm_bytes > 0 ? kSkinnyWarps * 64 * 4 : 0);
  shared.bytes = shared.barriers + (portable ? 0 : static_cast<int>(stages) * 16);
  return shared;
}

void check_shared(const SkinnyGemmOptions& options, const SkinnyGemmSchedule& s,
                  std::int64_t norm_bytes, std::int64_t bytes) {
  if (bytes <= options.shared_limit) return;
  const std::int64_t least = skinny_gemm_least_shared(s.m, s.k, options.kernel, norm_bytes);
  const std::string limit = std::to_string(options.shared_limit) + " bytes of shared memory";
  need(least <= options.shared_limit, options,
       "fewer rows than " + std::to_string(s.m) + " with " + std::to_string(s.k) +
           " columns: a block has " + limit + " on this device",
       "a need of " + std::to_string(least) + " bytes in the smallest cut");
  need(false, options,
       "at most " + limit + " per block: less padding, fewer stages or a larger split_k",
       std::to_string(bytes));
}

OperandSpec x_operand(TensorId id, const SkinnyGemmSchedule& s) {
  const std::int64_t slice = s.slice();
  return {.tensor = id,
          .kernel_tiles = TileSet::plain({{s.m, s.k}, {s.m, slice}}),
          .tiles_of_work =
              [s, slice](std::int64_t work) {
                std::vector<std::int64_t> tiles;
                const auto w = static_cast<int>(work);
                for (std::int64_t i = s.first_k(w) / slice; i * slice < s.end_k(w); ++i) {
                  tiles.push_back(i);
                }
                return tiles;
              },
          .sync_slot = SkinnyGemmOperands::kSlotX};
}

/// y and residual: the columns of a work's strips.
OperandSpec column_operand(TensorId id, const SkinnyGemmSchedule& s, std::int32_t slot) {
  OperandSpec operand{.tensor = id, .sync_slot = slot};
  const std::int64_t width = s.group_columns();
  operand.kernel_tiles = TileSet::plain({{s.m, s.columns()}, {s.m, width}});
  operand.tiles_of_work = [s](std::int64_t work) {
    return std::vector<std::int64_t>{s.group_of(static_cast<int>(work))};
  };
  return operand;
}

}  // namespace

std::string skinny_gemm_kernel_name(SkinnyKernel kernel, int tokens, bool norm, bool split) {
  return std::string("skinny_gemm.") + (kernel == SkinnyKernel::kBulk ? "bulk" : "portable") +
         ".m" + std::to_string(tokens) + (norm ? ".norm" : "") + (split ? ".split" : "");
}

SkinnyGemmOptions skinny_gemm_cut(std::int64_t m, std::int64_t n, std::int64_t k,
                                  std::int32_t num_sms, const SkinnyGemmOptions& base,
                                  std::int32_t blocks_per_sm, bool with_norm) {
  SkinnyGemmOptions cut = base;
  const PackedLayout layout = layout_of(n, k, base);
  const std::int64_t unit = base.gated ? 2 : 1;
  const std::int64_t groups = ceil_div(layout.num_strips(), unit);
  const std::int64_t spans = num_spans(m, k);
  // Rows of x fill the shared memory of a block beside its ring: K is split until a third of it is
  // enough. A handful of strips is split too, until they are enough for a quarter of the SMs, which
  // is what it takes to keep the memory busy: the last arriver's sums cost more than idle SMs.
  const std::int64_t room = (base.shared_limit / blocks_per_sm - 1024) / 3;
  cut.split_k = std::min(spans, ceil_div(m * k * 2, room));
  while (cut.split_k < spans && groups * cut.split_k * 4 <= num_sms) ++cut.split_k;
  const std::int64_t norm_bytes = with_norm ? k * 4 : 0;
  const auto shared_with = [&](std::int64_t stages) -> std::int64_t {
    return shared_of(schedule_of(m, n, k, cut), stages, false, norm_bytes).bytes;
  };
  while (cut.split_k < spans && shared_with(1) > base.shared_limit) ++cut.split_k;
  const std::int64_t slots = std::max<std::int64_t>(1, num_sms / cut.split_k);
  cut.strips_per_work = ceil_div(groups, slots) * unit;
  const SkinnyGemmSchedule s = schedule_of(m, n, k, cut);
  const std::int64_t others = shared_with(0) + std::int64_t{kMostStages} * 16;
  const std::int64_t per_block = base.shared_limit / blocks_per_sm - (blocks_per_sm > 1 ? 1024 : 0);
  const std::int64_t chunks = s.most_parts() * cut.strips_per_work;
  cut.stages = std::clamp<std::int64_t>((per_block - others) / kStageBytes, 1,
                                        std::min<std::int64_t>(kMostStages, chunks));
  // Everything is fetched ahead: nobody is in a hurry, and copies in flight hold up the kernel
  // before.
  if (cut.stages >= chunks) cut.window = 1;
  return cut;
}

SkinnyGemmOptions skinny_gemm_cut(std::int64_t m, std::int64_t n, std::int64_t k,
                                  std::int32_t num_sms, const SkinnyGemmOptions& base,
                                  const SkinnyGemmKnobs& knobs, bool with_norm) {
  const auto per_sm = static_cast<std::int32_t>(std::max<std::int64_t>(1, knobs.blocks_per_sm));
  SkinnyGemmOptions cut = skinny_gemm_cut(m, n, k, num_sms, base, per_sm, with_norm);
  if (knobs.strips_per_work > 0) cut.strips_per_work = knobs.strips_per_work;
  if (knobs.split_k > 0) cut.split_k = knobs.split_k;
  if (knobs.stages > 0) {
    cut.stages = knobs.stages;
    cut.window = base.window;  // the cut's was for its own ring
  }
  if (knobs.window > 0) cut.window = knobs.window;
  return cut;
}

std::int64_t skinny_gemm_shared(std::int64_t m, std::int64_t n, std::int64_t k,
                                const SkinnyGemmOptions& cut, std::int64_t norm_bytes) {
  const bool portable = cut.kernel == SkinnyKernel::kPortable;
  return shared_of(schedule_of(m, n, k, cut), cut.stages, portable, norm_bytes).bytes +
         cut.shared_padding;
}

std::int64_t skinny_gemm_least_shared(std::int64_t m, std::int64_t k, SkinnyKernel kernel,
                                      std::int64_t norm_bytes) {
  const SkinnyGemmSchedule s =
      schedule_of(m, kStripRows, k, {.strips_per_work = 1, .split_k = num_spans(m, k)});
  return shared_of(s, 1, kernel == SkinnyKernel::kPortable, norm_bytes).bytes;
}

NodeSpec skinny_gemm(const TensorTable& tensors, const SkinnyGemmOptions& options,
                     const SkinnyGemmTensors& operands) {
  check_operands(tensors, options, operands);
  const Tensor& tx = tensors[operands.x];
  const Tensor& tw = tensors[operands.w];
  const Tensor& ty = tensors[operands.y];
  const std::int64_t k = tw.spec.shape[1];
  check_options(options, tx.spec.shape[0], k);
  const SkinnyGemmSchedule s = schedule_of(tx.spec.shape[0], tw.spec.shape[0], k, options);
  const bool norm = operands.norm_weight != kNoTensor;
  need(!norm || s.wait_k == 0, options, "a norm in front needs all of K at once: wait_k 0",
       std::to_string(options.wait_k));
  const DType norm_type = norm ? tensors[operands.norm_weight].spec.dtype : DType::kF32;
  const bool portable = options.kernel == SkinnyKernel::kPortable;
  const std::int64_t norm_bytes = norm ? k * static_cast<std::int64_t>(size_of(norm_type)) : 0;
  const SkinnyGemmShared shared = shared_of(s, options.stages, portable, norm_bytes);
  check_shared(options, s, norm_bytes, shared.bytes + options.shared_padding);

  const bool has_residual = operands.residual != kNoTensor;
  NodeSpec node{
      .name = options.name,
      .kernel = skinny_gemm_kernel_name(options.kernel, skinny_tokens(s.m), norm, s.split_k > 1),
      .num_works = s.num_works(),
      .num_blocks = s.num_works(),
      .order = options.order,
      .operands = {x_operand(operands.x, s),
                   {.tensor = operands.w,
                    .when = ReadTime::kPrologue,
                    // Somebody must own the slot; a constant is never waited for.
                    .sync_slot = has_residual ? -1 : SkinnyGemmOperands::kSlotResidual},
                   column_operand(operands.y, s, SkinnyGemmOperands::kSlotY)},
      .resources = {.threads = portable ? kSkinnyConsumers : kSkinnyThreads,
                    .registers_per_thread = 96,
                    .shared_bytes = shared.bytes + options.shared_padding},
      .cost = options.cost.value_or(Cost{.per_work = options.cost_of_work}),
      .edge = options.edge};
  OperandSpec& y = node.operands[SkinnyGemmOperands::kY];
  y.access = Access::kWrite;
  if (s.split_k > 1) {
    y.reduction = Reduction::kLastArriver;
    node.counter.arrivals.assign(static_cast<std::size_t>(s.groups()),
                                 static_cast<std::uint32_t>(s.split_k));
    node.scratch_bytes = static_cast<std::size_t>(s.num_strips) *
                         static_cast<std::size_t>(s.spans()) * 16 * static_cast<std::size_t>(s.m) *
                         sizeof(float);
  }
  const auto add = [&](TensorId id, OperandSpec spec) {
    if (id == kNoTensor) return -1;
    node.operands.push_back(std::move(spec));
    return static_cast<int>(node.operands.size()) - 1;
  };
  const auto constant = [](TensorId id) {
    return OperandSpec{.tensor = id, .when = ReadTime::kPrologue};
  };
  const int at_norm = add(operands.norm_weight, constant(operands.norm_weight));
  const int at_bias = add(operands.bias, constant(operands.bias));
  const int at_residual =
      add(operands.residual,
          operands.residual == kNoTensor
              ? OperandSpec{}
              : column_operand(operands.residual, s, SkinnyGemmOperands::kSlotResidual));

  SkinnyGemmArgs args{};
  args.schedule = s;
  args.shared = shared;
  args.stages = static_cast<std::int32_t>(options.stages);
  args.window = static_cast<std::int32_t>(std::min(options.window, options.stages));
  args.parts_per_meet = parts_per_meet(s);
  args.eps = options.eps;
  args.one_over_k = 1.0F / static_cast<float>(k);
  args.norm_type = norm_type;
  args.bias_type = operands.bias == kNoTensor ? DType::kF32 : tensors[operands.bias].spec.dtype;
  args.y_type = ty.spec.dtype;
  node.make_args = [=](const Addresses& at) {
    const auto address = [&](int index) -> void* {
      return index < 0 ? nullptr : at.operands[static_cast<std::size_t>(index)];
    };
    SkinnyGemmArgs filled = args;
    filled.x = {address(SkinnyGemmOperands::kX)};
    filled.w = {static_cast<const BFloat16*>(address(SkinnyGemmOperands::kW))};
    filled.y = {address(SkinnyGemmOperands::kY)};
    filled.norm_weight = {address(at_norm)};
    filled.bias = {address(at_bias)};
    filled.residual = {static_cast<const float*>(address(at_residual))};
    filled.partials = static_cast<float*>(at.scratch);
    return to_bytes(filled);
  };
  return node;
}

}  // namespace tileweave

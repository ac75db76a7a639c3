#include "tileweave/models/linear.h"

#include <algorithm>

#include "tileweave/core/error.h"
#include "tileweave/kernels/activation/silu_mul.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/kernels/gemm/wide_gemm.h"
#include "tileweave/kernels/vendor/vendor_gemm.h"

namespace tileweave {
namespace {

void row_major_linear(StepBuilder& b, const LinearSpec& spec) {
  const Shape shape = b.tensors()[spec.y].spec.shape;
  GemmEpilogue epilogue{.bias = spec.bias, .residual = spec.residual};
  if (spec.gated) {
    epilogue.activation = GemmActivation::kSilu;
    epilogue.gated = true;
  }
  require(spec.norm == kNoTensor, "build a step", "no norm in front of a row-major product",
          b.name(spec.name));
  b.plan().add(gemm(b.tensors(),
                    {.name = b.name(spec.name),
                     .tile_m = std::min(b.tile_m(), shape[0]),
                     .tile_n = b.tile_n(shape[1]),
                     .b_layout = BLayout::kNxK,
                     .num_blocks = b.num_blocks(),
                     .epilogue = epilogue,
                     .edge = b.edge(spec.op)},
                    spec.x, b.weight(*spec.weight, spec.name), spec.y));
}

void skinny_linear(StepBuilder& b, const LinearSpec& spec, std::int64_t rows) {
  const Weight& weight = *spec.weight;
  const OpKnobs& knobs = b.knobs(spec.op);
  SkinnyGemmOptions options{.name = b.name(spec.name),
                            .gated = spec.gated,
                            .eps = b.eps(),
                            .kernel = b.products(),
                            .wait_k = knobs.wait_k,
                            .shared_padding = knobs.shared_padding,
                            .shared_limit = b.context().limits.shared_bytes_per_block,
                            .edge = knobs.edge};
  options =
      skinny_gemm_cut(rows, weight.shape[0], weight.shape[1], b.context().limits.num_sms, options,
                      {.blocks_per_sm = knobs.blocks_per_sm,
                       .strips_per_work = knobs.strips_per_work,
                       .split_k = knobs.split_k,
                       .stages = knobs.stages,
                       .window = knobs.window},
                      spec.norm != kNoTensor);
  b.plan().add(skinny_gemm(b.tensors(), options,
                           {.x = spec.x,
                            .w = b.weight(weight, spec.name),
                            .y = spec.y,
                            .norm_weight = spec.norm,
                            .residual = spec.residual,
                            .bias = spec.bias}));
}

/// Another library's product ends with sums: SiLU-mul comes behind it.
void vendor_linear(StepBuilder& b, const LinearSpec& spec, std::int64_t rows) {
  TensorId y = spec.y;
  if (spec.gated) y = b.value(std::string(spec.name) + " sums", rows, spec.weight->shape[0]);
  b.plan().add(vendor_gemm(b.tensors(), {.name = b.name(spec.name)},
                           {.x = spec.x,
                            .w = b.row_major_weight(*spec.weight, spec.name),
                            .y = y,
                            .residual = spec.residual,
                            .bias = spec.bias}));
  if (!spec.gated) return;
  b.plan().add(silu_mul(b.tensors(),
                        {.name = b.name("silu-mul"),
                         .tile_m = b.tile_m(),
                         .tile_n = b.tile_n(spec.weight->shape[0] / 2),
                         .num_blocks = b.num_blocks(),
                         .edge = b.edge(StepOp::kSiluMul)},
                        y, spec.y));
}

void wide_linear(StepBuilder& b, const LinearSpec& spec, std::int64_t rows) {
  const StepContext& context = b.context();
  require(spec.norm == kNoTensor, "build a step", "no norm in front of a product of many rows",
          b.name(spec.name));
  if (context.wide_products == WideProducts::kVendor) return vendor_linear(b, spec, rows);
  if (!has_wide_products(context.limits, b.products())) {
    throw Error("build a step",
                "at most " + std::to_string(context.decode_rows) + " rows for `" +
                    b.name(spec.name) +
                    "` on this GPU, or products `bulk` on one of compute capability 9.0",
                std::to_string(rows));
  }
  b.plan().add(wide_gemm(b.tensors(),
                         {.name = b.name(spec.name),
                          .gated = spec.gated,
                          .split_k = wide_gemm_split(rows, spec.weight->shape[0],
                                                     spec.weight->shape[1], context.limits.num_sms),
                          .edge = b.edge(spec.op)},
                         {.x = spec.x,
                          .w = b.weight(*spec.weight, spec.name),
                          .y = spec.y,
                          .residual = spec.residual,
                          .bias = spec.bias}));
}

void packed_linear(StepBuilder& b, const LinearSpec& spec) {
  if (spec.gated != (*spec.weight->packing == StripOrder::kPaired)) {
    throw Error("build a step",
                "gate and up packed in pairs for granularity `stages`, one below the other for "
                "`ops` (weights are loaded for one of them)",
                "the other in `" + b.name(spec.name) + "`");
  }
  const std::int64_t rows = b.tensors()[spec.x].spec.shape[0];
  rows > b.context().decode_rows ? wide_linear(b, spec, rows) : skinny_linear(b, spec, rows);
}

}  // namespace

void linear(StepBuilder& b, const LinearSpec& spec) {
  spec.weight->packing ? packed_linear(b, spec) : row_major_linear(b, spec);
}

}  // namespace tileweave

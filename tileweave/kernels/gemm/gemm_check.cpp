#include "tileweave/kernels/gemm/gemm_check.h"

#include "tileweave/core/format.h"
#include "tileweave/kernels/gemm/gemm_args.h"

namespace tileweave {
namespace {

std::string quoted(const Tensor& t) {
  return "`" + t.spec.name + "`";
}

bool is_float(DType type) {
  return type == DType::kF32 || type == DType::kBF16 || type == DType::kF16;
}

void check_types(const GemmOptions& options, const Tensor& a, const Tensor& b, const Tensor& c) {
  for (const Tensor* t : {&a, &b, &c}) {
    need(is_float(t->spec.dtype), options, quoted(*t) + " must be f32, bf16 or f16",
         name_of(t->spec.dtype));
  }
  bool known = false;
  for_each_gemm_types(
      [&](auto types) { known = known || types.match(a.spec.dtype, b.spec.dtype, c.spec.dtype); });
  need(known, options,
       quoted(a) + " x " + quoted(b) + " -> " + quoted(c) +
           " must be f32 x f32 or bf16 x bf16 -> f32 or bf16, or f32 x bf16 or f16 -> f32",
       std::string(name_of(a.spec.dtype)) + " x " + name_of(b.spec.dtype) + " -> " +
           name_of(c.spec.dtype));
}

void check_shapes(const GemmOptions& options, const Tensor& a, const Tensor& b, const Tensor& c) {
  const std::int64_t m = a.spec.shape[0];
  const std::int64_t k = a.spec.shape[1];
  const bool k_first = options.b_layout == BLayout::kKxN;
  const std::int64_t columns = b.spec.shape[k_first ? 1 : 0];
  need(b.spec.shape[k_first ? 0 : 1] == k, options,
       quoted(b) + " must be " +
           (k_first ? "(" + std::to_string(k) + ", N)" : "(N, " + std::to_string(k) + ")") +
           " for " + quoted(a) + " " + to_string(a.spec.shape),
       to_string(b.spec.shape));
  const bool gated = options.epilogue.gated;
  need(!gated || columns % 2 == 0, options,
       quoted(b) + " must hold the gate's columns and as many others", std::to_string(columns));
  const std::int64_t n = gated ? columns / 2 : columns;
  need(c.spec.shape == Shape{m, n}, options, quoted(c) + " must be " + to_string(Shape{m, n}),
       to_string(c.spec.shape));
}

void check_epilogue(const TensorTable& tensors, const GemmOptions& options, const Tensor& b,
                    TensorId c_id) {
  const GemmEpilogue& epilogue = options.epilogue;
  const Tensor& c = tensors[c_id];
  need(!epilogue.gated || b.spec.kind == TensorKind::kConstant, options,
       "a gated GEMM needs a constant " + quoted(b), name_of(b.spec.kind));
  if (epilogue.bias != kNoTensor) {
    const Tensor& bias = tensors[epilogue.bias];
    const Shape expected{c.spec.shape[1] * (epilogue.gated ? 2 : 1)};
    need(bias.spec.shape == expected, options,
         "the bias " + quoted(bias) + " must be " + to_string(expected),
         to_string(bias.spec.shape));
    need(is_float(bias.spec.dtype), options,
         "the bias " + quoted(bias) + " must be f32, bf16 or f16", name_of(bias.spec.dtype));
    need(bias.spec.kind == TensorKind::kConstant, options,
         "the bias " + quoted(bias) + " must be constant", name_of(bias.spec.kind));
  }
  if (epilogue.residual == kNoTensor) return;
  const Tensor& residual = tensors[epilogue.residual];
  need(residual.spec.shape == c.spec.shape, options,
       "the residual " + quoted(residual) + " must be " + to_string(c.spec.shape),
       to_string(residual.spec.shape));
  need(residual.spec.dtype == DType::kF32, options,
       "the residual " + quoted(residual) + " must be f32", name_of(residual.spec.dtype));
  need(epilogue.residual != c_id, options,
       "the result must be another value than the residual (it may share its buffer)",
       quoted(c) + " as both");
  need(options.split == GemmSplit::kTiles ||
           tensors.buffer_owner(c_id) != tensors.buffer_owner(epilogue.residual),
       options,
       quoted(c) + " may share the buffer of the residual " + quoted(residual) +
           " only where K is not split",
       "a split of K");
}

}  // namespace

void check_gemm_tensors(const TensorTable& tensors, const GemmOptions& options, TensorId a_id,
                        TensorId b_id, TensorId c_id) {
  const Tensor& a = tensors[a_id];
  const Tensor& b = tensors[b_id];
  const Tensor& c = tensors[c_id];
  for (const Tensor* t : {&a, &b, &c}) {
    need(t->spec.shape.num_axes == 2, options, quoted(*t) + " must be a matrix",
         "shape " + to_string(t->spec.shape));
  }
  check_types(options, a, b, c);
  check_shapes(options, a, b, c);
  need(c.spec.kind != TensorKind::kConstant, options,
       "the result " + quoted(c) + " must not be constant");
  need(c_id != a_id && c_id != b_id, options, "the result must be another tensor than the operands",
       quoted(c) + " as both");
  check_epilogue(tensors, options, b, c_id);
}

}  // namespace tileweave

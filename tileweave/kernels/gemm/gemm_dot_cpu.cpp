// Dot products and widening of 16-bit floats, for the SIMD target of this machine. Targets whose
// vectors have no size at compile time are left out: their 128-bit siblings run instead.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tileweave/kernels/gemm/gemm_dot-inl.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tileweave/kernels/gemm/gemm_dot-inl.h"

#include <algorithm>

#include "tileweave/kernels/gemm/gemm_math_cpu.h"

namespace tileweave {
namespace {

HWY_EXPORT(dot_f32);
HWY_EXPORT(dot_f32_bf16);
HWY_EXPORT(dot_f32_f16);
HWY_EXPORT(dot_bf16);
HWY_EXPORT(fold_kept_sums);
HWY_EXPORT(widen_bf16);
HWY_EXPORT(widen_f16);

}  // namespace

namespace gemm_math {

void widen(const float* from, std::int64_t count, float* to) {
  std::copy_n(from, count, to);
}
void widen(const BFloat16* from, std::int64_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_bf16)(from, count, to);
}
void widen(const Float16* from, std::int64_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_f16)(from, count, to);
}

void dot_products(const DotProducts<float, float>& p) {
  HWY_DYNAMIC_DISPATCH(dot_f32)(p);
}
void dot_products(const DotProducts<float, BFloat16>& p) {
  HWY_DYNAMIC_DISPATCH(dot_f32_bf16)(p);
}
void dot_products(const DotProducts<float, Float16>& p) {
  HWY_DYNAMIC_DISPATCH(dot_f32_f16)(p);
}
void dot_products(const DotProducts<BFloat16, BFloat16>& p) {
  HWY_DYNAMIC_DISPATCH(dot_bf16)(p);
}

void fold_sums(const float* sums, std::int64_t rows, std::int64_t cols, float* out,
               std::int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(fold_kept_sums)(sums, rows, cols, out, out_stride);
}

}  // namespace gemm_math
}  // namespace tileweave

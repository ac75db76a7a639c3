// Products of fp32 panels for the SIMD target of this machine.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tileweave/kernels/gemm/gemm_panels-inl.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tileweave/kernels/gemm/gemm_panels-inl.h"

#include "tileweave/kernels/gemm/gemm_math_cpu.h"

namespace tileweave {
namespace {

HWY_EXPORT(accumulate_all_panels);

}  // namespace

void gemm_math::accumulate_panels(float* acc, const float* a, const float* b, std::int64_t rows,
                                  std::int64_t cols, std::int64_t depth) {
  HWY_DYNAMIC_DISPATCH(accumulate_all_panels)(acc, a, b, rows, cols, depth);
}

}  // namespace tileweave

// Epilogue rows for the SIMD target of this machine.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tileweave/kernels/gemm/gemm_epilogue-inl.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tileweave/kernels/gemm/gemm_epilogue-inl.h"

#include "tileweave/kernels/gemm/gemm_math_cpu.h"

namespace tileweave {
namespace {

HWY_EXPORT(finish_one_row);

}  // namespace

void gemm_math::finish_row(const EpilogueRow& row) {
  HWY_DYNAMIC_DISPATCH(finish_one_row)(row);
}

}  // namespace tileweave

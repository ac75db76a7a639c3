// RMSNorm on a GPU in its simple form: one warp per row, fp32, a fixed tree over the lanes.
//
// Any architecture from sm_80. Lane l adds the squares of elements l, l + 32, ... in ascending
// order, then the lanes' sums meet in a butterfly: the bits of a row depend on the row alone.
#pragma once

#include <cstdint>

#include "tileweave/kernels/norm/rms_norm_args.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

template <class X, class W, class Y>
__device__ void rms_norm_row(const X* x, const W* weight, Y* y, std::int64_t cols, float eps) {
  const auto lane = static_cast<std::int64_t>(threadIdx.x % 32);
  float squares = 0.0F;
  for (std::int64_t j = lane; j < cols; j += 32) {
    const float value = to_float(x[j]);
    squares = fmaf(value, value, squares);
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    squares += __shfl_xor_sync(0xffffffffU, squares, distance);
  }
  const float scale = 1.0F / sqrtf(squares / static_cast<float>(cols) + eps);
  for (std::int64_t j = lane; j < cols; j += 32) {
    y[j] = from_float<Y>(to_float(x[j]) * scale * to_float(weight[j]));
  }
}

template <class X, class W, class Y>
__global__ void __launch_bounds__(kRmsNormThreads)
    rms_norm_cuda(const __grid_constant__ RmsNormArgs<X, W, Y> args,
                  const __grid_constant__ SyncContext<RmsNormOperands::kSlots> context) {
  using Operands = RmsNormOperands;
  SyncCta<AtomicsCuda, Operands::kSlots> sync(context);
  if (!sync.begin_cta()) return;
  const auto warp = static_cast<std::int64_t>(threadIdx.x / 32);
  for (std::int64_t at = blockIdx.x; at < args.num_works; at += gridDim.x) {
    const std::int64_t work = sync.remap(at);
    const Ready ready = sync.wait_input(Operands::kSlotX, {work});
    if (!ready) return;
    const std::int64_t end = args.end_row(work);
    for (std::int64_t i = args.first_row(work) + warp; i < end; i += kRmsNormThreads / 32) {
      rms_norm_row(args.x.get(ready) + i * args.cols, args.weight.get(),
                   args.y.get() + i * args.cols, args.cols, args.eps);
    }
    sync.signal_output(Operands::kSlotY, {work});
  }
}

}  // namespace tileweave

// Advance on a GPU: one block, rows over its threads; the count of steps last.
#pragma once

#include "tileweave/kernels/sampling/advance_args.h"
#include "tileweave/sync/ptx_memory.cuh"

namespace tileweave {

inline constexpr int kAdvanceThreads = 128;

__global__ void __launch_bounds__(kAdvanceThreads)
    advance_cuda(const __grid_constant__ AdvanceArgs args) {
  const std::uint32_t step = *args.step;
  for (std::int64_t row = threadIdx.x; row < args.rows; row += kAdvanceThreads) {
    advance_row(args, step, row);
  }
  // Every thread's tokens are ordered before the release (cumulativity through the barrier), and
  // every thread has read the count.
  __syncthreads();
  if (threadIdx.x != 0) return;
  ptx::store_release_sys(args.step, step + 1);
  if (args.published != nullptr) ptx::store_release_sys(args.published, step + 1);
}

}  // namespace tileweave

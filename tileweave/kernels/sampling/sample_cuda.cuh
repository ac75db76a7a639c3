// Sampling on a GPU: one block per work, row by row (sample_row.cuh), any architecture from sm_80.
#pragma once

#include <cstdint>

#include "tileweave/kernels/sampling/sample_args.h"
#include "tileweave/kernels/sampling/sample_row.cuh"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

__device__ inline SampleRowSettings read_settings(const SampleArgs& args, std::int64_t row) {
  const std::int64_t length = args.history_length.get()[row];
  const std::int32_t* const seed = args.seed.get() + 2 * row;
  return {
      .temperature = args.temperature.get()[row],
      .top_p = args.top_p.get()[row],
      .min_p = args.min_p.get()[row],
      .repetition_penalty = args.repetition_penalty.get()[row],
      .top_k = args.top_k.get()[row],
      .history_length = static_cast<std::int32_t>(length < 0 ? 0 : min64(length, args.max_history)),
      .history = args.history.get() + row * args.max_history,
      .uniform =
          sampling_uniform(static_cast<std::uint32_t>(seed[0]), static_cast<std::uint32_t>(seed[1]),
                           static_cast<std::uint32_t>(args.position.get()[row]))};
}

// Two blocks per SM, so that one finds room beside whatever else is in flight.
__global__ void __launch_bounds__(kSampleThreads, 2)
    sample_cuda(const __grid_constant__ SampleArgs args,
                const __grid_constant__ SyncContext<SampleOperands::kSlots> context) {
  using Operands = SampleOperands;
  __shared__ SampleShared shared;
  SyncCta<AtomicsCuda, Operands::kSlots> sync(context);
  if (!sync.begin_cta()) return;
  const std::int64_t tiles_n = args.tiles_n(), num_works = args.num_works();
  const auto stride = static_cast<std::int32_t>(args.score_stride());
  const auto cols = static_cast<std::int32_t>(args.cols);
  float* const scores = args.scores + blockIdx.x * args.score_stride();

  for (std::int64_t at = blockIdx.x; at < num_works; at += gridDim.x) {
    const std::int64_t work = sync.remap(at);
    const std::int64_t first = work * args.tile_m;
    const std::int64_t end = min64(args.rows, first + args.tile_m);
    SampleRowSettings settings = read_settings(args, first);
    Ready ready(true);
    for (std::int64_t n = 0; n < tiles_n; ++n) {
      ready = sync.wait_input(Operands::kSlotLogits, {work, n});
      if (!ready) return;
    }
    const float* const logits = args.logits.get(ready);
    for (std::int64_t row = first; row < end; ++row) {
      if (row > first) settings = read_settings(args, row);
      const std::int32_t id =
          sample_row(shared, logits + row * args.cols, cols, stride, settings, scores);
      if (threadIdx.x == 0) args.ids.get()[row] = id;
      __syncthreads();  // the next row's scores overwrite what warp 0 draws from
    }
    sync.signal_output(Operands::kSlotIds, {work});
  }
}

}  // namespace tileweave

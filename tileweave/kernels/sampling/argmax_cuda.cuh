// Argmax on a GPU: a block takes some columns of some rows with 16-byte loads, row by row; the last
// block of a row tile compares what they found.
//
// A maximum over (element, lowest column) is the same whoever computes it in what order, so neither
// splits nor schedules can change a result. Any architecture from sm_80.
#pragma once

#include <cstdint>

#include "tileweave/kernels/sampling/argmax_args.h"
#include "tileweave/kernels/sampling/ordered_key.cuh"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

inline constexpr int kArgmaxWarps = kArgmaxThreads / 32;

/// This thread's share of `count` elements; `first` is the column of the first. Produced data:
/// plain loads, four of them on their way at a time.
__device__ __forceinline__ BestSeen look_at_row(const float* row, std::int32_t count,
                                                std::int32_t first) {
  constexpr int kInFlight = 4;
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const float nothing = __uint_as_float(0x7fffffffU);  // NaN
  BestSeen seen;
  std::int32_t rest = 0;  // first element that is looked at alone
  if (reinterpret_cast<std::uintptr_t>(row) % sizeof(float4) == 0) {
    const auto* const quads = reinterpret_cast<const float4*>(row);
    const std::int32_t num_quads = count / 4;
    for (std::int32_t from = thread; from < num_quads; from += kInFlight * kArgmaxThreads) {
      float4 quad[kInFlight];
#pragma unroll
      for (int u = 0; u < kInFlight; ++u) {
        const std::int32_t at = from + u * kArgmaxThreads;
        quad[u] = make_float4(nothing, nothing, nothing, nothing);
        if (at < num_quads) quad[u] = quads[at];
      }
#pragma unroll
      for (int u = 0; u < kInFlight; ++u) {
        const std::int32_t at = first + 4 * (from + u * kArgmaxThreads);
        seen.look_at(quad[u].x, at);
        seen.look_at(quad[u].y, at + 1);
        seen.look_at(quad[u].z, at + 2);
        seen.look_at(quad[u].w, at + 3);
      }
    }
    rest = 4 * num_quads;
  }
  for (std::int32_t from = rest + thread; from < count; from += kInFlight * kArgmaxThreads) {
    float value[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const std::int32_t at = from + u * kArgmaxThreads;
      value[u] = at < count ? row[at] : nothing;
    }
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      seen.look_at(value[u], first + from + u * kArgmaxThreads);
    }
  }
  return seen;
}

/// The largest of the parts that `num_parts` works found for row `row` of their tile, over a warp.
__device__ __forceinline__ std::uint64_t best_of_parts(const ArgmaxArgs& args,
                                                       std::int64_t first_work,
                                                       std::int64_t num_parts, std::int64_t row) {
  std::uint64_t best = 0;
  for (std::int64_t p = threadIdx.x % 32; p < num_parts; p += 32) {
    const ArgmaxPart part = args.parts[(first_work + p) * args.tile_m + row];
    const std::uint64_t other = part.id < 0 ? 0 : best_of(ordered_key(part.value), part.id);
    best = best < other ? other : best;
  }
  return warp_max(best);
}

__global__ void __launch_bounds__(kArgmaxThreads)
    argmax_cuda(const __grid_constant__ ArgmaxArgs args,
                const __grid_constant__ SyncContext<ArgmaxOperands::kSlots> context) {
  using Operands = ArgmaxOperands;
  // Two rows' worth: warp 0 may still read one row's while the others write the next one's.
  __shared__ std::uint64_t of_warp[2][kArgmaxWarps];
  SyncCta<AtomicsCuda, Operands::kSlots> sync(context);
  if (!sync.begin_cta()) return;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t splits = args.tiles_n(), num_works = args.num_works();
  int turn = 0;  // which row of of_warp

  for (std::int64_t at = blockIdx.x; at < num_works; at += gridDim.x) {
    const std::int64_t work = sync.remap(at);
    // Works are fewer than 2^31; a division of words takes a fraction of the other kind's time.
    const std::int64_t m = static_cast<std::uint32_t>(work) / static_cast<std::uint32_t>(splits);
    const std::int64_t n = work - m * splits;
    const Ready ready = sync.wait_input(Operands::kSlotLogits, {m, n});
    if (!ready) return;
    const std::int64_t rows = min64(args.tile_m, args.rows - m * args.tile_m);
    const std::int64_t col = n * args.tile_n;
    const auto cols = static_cast<std::int32_t>(min64(args.tile_n, args.cols - col));
    const float* const logits = args.logits.get(ready) + m * args.tile_m * args.cols + col;
    std::int32_t* const ids = args.ids.get() + m * args.tile_m;
    for (std::int64_t i = 0; i < rows; ++i, turn ^= 1) {
      const BestSeen seen =
          look_at_row(logits + i * args.cols, cols, static_cast<std::int32_t>(col));
      const std::uint64_t of_lanes = warp_max(seen.best());
      if (lane == 0) of_warp[turn][warp] = of_lanes;
      __syncthreads();
      if (warp != 0) continue;
      const std::uint64_t best = warp_max(lane < kArgmaxWarps ? of_warp[turn][lane] : 0);
      if (lane != 0) continue;
      if (splits > 1) {
        args.parts[work * args.tile_m + i] = {value_of_key(key_of_best(best)),
                                              column_of_best(best)};
      } else {
        ids[i] = best == 0 ? 0 : column_of_best(best);
      }
    }
    if (splits > 1) {
      if (!sync.arrive_last(m, static_cast<std::uint32_t>(splits))) continue;
      for (std::int64_t i = warp; i < rows; i += kArgmaxWarps) {
        const std::uint64_t best = best_of_parts(args, m * splits, splits, i);
        if (lane == 0) ids[i] = best == 0 ? 0 : column_of_best(best);
      }
    }
    sync.signal_output(Operands::kSlotIds, {m});
  }
}

}  // namespace tileweave

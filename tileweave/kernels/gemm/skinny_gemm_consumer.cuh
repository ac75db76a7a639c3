// What every thread of a skinny GEMM block that multiplies does, whoever brings the weights.
//
// `Weights` brings them, in the order of strips, then of parts of K, a part per stage of the ring:
//   bool wait()               this warp's fragments of the next part are there; false: give up
//   std::uint32_t fragments() where this lane's piece of the first of them is, in shared memory
//   void release()            they have been read by the whole warp; on to the next part
// All lanes of a warp call them together. `input` has had its prologue. Kernels that share this
// share the order of all sums: their results are the same to the bit.
#pragma once

#include <cstdint>

#include "tileweave/kernels/gemm/skinny_gemm_block.cuh"

namespace tileweave {

/// Set by a warp whose wait failed. It goes on to take part in the barriers, which count every
/// warp; the block ends without a signal.
__device__ __forceinline__ volatile int* skinny_dead(const SkinnyGemmArgs& args) {
  return reinterpret_cast<int*>(skinny_shared() + args.shared.zeros + 16);
}

/// kSplit: several works share K. A kernel of its own, so that the others stay short.
template <int kTokens, bool kNorm, bool kSplit, class Input, class Weights>
__device__ __forceinline__ void skinny_consume(const SkinnyGemmArgs& args, SkinnySync& sync,
                                               const SkinnyWork<kSplit>& work, Input& input,
                                               Weights& weights) {
  using Operands = SkinnyGemmOperands;
  constexpr int kCount = SkinnyResults<kTokens, kNorm>::kCount;
  const SkinnyGemmSchedule& s = args.schedule;
  SkinnySums<kTokens> sums(args);
  SkinnyResults<kTokens, kNorm> results(args);
  const float* residual = nullptr;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  bool alive = true;
  const int warp_sums = 16 * skinny_columns<kTokens>(args);
  float* const partial = reinterpret_cast<float*>(skinny_shared() + args.shared.partial);
  int buffer = 0;
  TW_ROLLED_LOOP
  for (int strip = work.first_strip(); strip < work.end_strip(); ++strip) {
    float total[kCount] = {};
    float span[kCount] = {};
    int in_span = 0;     // parts that `span` holds
    int spans_done = 0;  // that `total` holds, or that are stored
    TW_ROLLED_LOOP
    for (int k = work.k_begin(); k < work.k_end();) {
      if (strip == work.first_strip() &&
          (k == work.k_begin() || (s.wait_k != 0 && k % s.wait_k == 0))) {
        const Ready ready =
            sync.wait_input(Operands::kSlotX, {0, s.wait_k == 0 ? 0 : k / s.wait_k});
        if (!ready) return;
        if (k == work.k_begin() && args.residual.ptr != nullptr) {
          const Ready too = sync.wait_input(Operands::kSlotResidual, {0, work.group()});
          if (!too) return;
          residual = args.residual.get(too);
        }
        input.bring(args.x.get(ready), k);
        if (k == work.k_begin()) results.begin_block();
      }
      if (!kSplit && k == work.k_begin()) results.begin_strip(strip, residual);
      float* const sums_here = partial + buffer;
      int count = 0;
      if constexpr (kTokens > 16) SkinnyGroup::barrier();  // one buffer: it has been read
      TW_ROLLED_LOOP
      for (; count < args.parts_per_meet && k < work.k_end(); ++count, k += kPartColumns) {
        if (alive) alive = weights.wait();
        const std::uint32_t x = (k - work.k_begin()) * 2 + warp * kWarpFragments * 32;
        if (k + kPartColumns <= work.k_end()) {
          sums.multiply(weights.fragments(), x);
        } else {
          sums.multiply_some(
              weights.fragments(), x,
              min(kWarpFragments, (work.k_end() - k + 15) / 16 - warp * kWarpFragments));
        }
        weights.release();
        sums.end_part(sums_here + (count * kSkinnyWarps + warp) * warp_sums);
      }
      if (!alive) *skinny_dead(args) = 1;  // said before the barrier, so that all learn of it
      // Two buffers: whoever writes this one again has passed the next barrier, and so have its
      // readers.
      SkinnyGroup::barrier();
      if constexpr (kTokens <= 16) {
        buffer = args.parts_per_meet * kSkinnyWarps * warp_sums - buffer;
      }
      TW_ROLLED_LOOP
      for (int p = 0; p < count; ++p) {
        const float* from = sums_here + p * kSkinnyWarps * warp_sums;
        ++in_span;
        const bool span_ends = in_span == s.span_parts || (k >= work.k_end() && p + 1 == count);
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          const int e = results.element(i);
          if (e < 0) continue;
          float sum = from[e];
#pragma unroll
          for (int w = 1; w < kSkinnyWarps; ++w) sum += from[w * warp_sums + e];
          span[i] = in_span == 1 ? sum : span[i] + sum;
          if (!span_ends) continue;
          if constexpr (kSplit) {
            skinny_partial(args, strip, work.first_span() + spans_done)[results.element_of_m(i)] =
                span[i];
          } else {
            total[i] = spans_done == 0 ? span[i] : total[i] + span[i];
          }
        }
        if (span_ends) {
          in_span = 0;
          ++spans_done;
        }
      }
    }
    if constexpr (!kSplit) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) results.put(i, strip, total[i]);
    }
  }
  if (*skinny_dead(args) != 0) return;
  if constexpr (kSplit) {
    if (!sync.arrive_last(work.group(), static_cast<std::uint32_t>(s.split_k))) return;
    add_spans(args, work, results, residual);
  }
  sync.signal_output(Operands::kSlotY, {0, work.group()});
}

}  // namespace tileweave

// Skinny GEMM on sm_90: one warp streams packed weights through a ring by bulk copies, eight
// multiply. The loader waits for nothing but room in the ring, so it fills the ring before the
// first wait and runs ahead through every strip; the consumers' warps meet only at the end of a
// part of K.
#pragma once

#include <cstdint>

#include "tileweave/kernels/gemm/skinny_gemm_block.cuh"
#include "tileweave/sync/mbarrier.cuh"

namespace tileweave {

/// A stage of the ring and how often it has been gone round.
struct RingPlace {
  int stage = 0;
  unsigned parity = 0;
  __device__ void next(int stages) {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1U;
  }
};

struct SkinnyRing {
  unsigned char* chunks;
  std::uint64_t* full;
  std::uint64_t* empty;

  __device__ explicit SkinnyRing(const SkinnyGemmArgs& args)
      : chunks(skinny_shared() + args.shared.ring),
        full(reinterpret_cast<std::uint64_t*>(skinny_shared() + args.shared.barriers)),
        empty(full + args.stages) {}
};

/// Work of this block, for the loader, which takes no part in the consumers' SyncCta.
__device__ __forceinline__ int skinny_work(const SyncHeader& h) {
  const auto position = static_cast<std::int64_t>(blockIdx.x);
  if (h.order_form == OrderForm::kTable) return h.order[position];
  if (h.order_form == OrderForm::kIdentity) return static_cast<int>(position);
  const std::int64_t work = position + h.order_offset;
  return static_cast<int>(work >= h.num_works ? work - h.num_works : work);
}

/// Named barrier 2: the loader arrives once the ring's barriers are there, consumers wait.
__device__ __forceinline__ void say_ring_ready() {
  asm volatile("bar.arrive 2, %0;" ::"n"(kSkinnyThreads) : "memory");
}
__device__ __forceinline__ void ring_ready() {
  asm volatile("bar.sync 2, %0;" ::"n"(kSkinnyThreads) : "memory");
}

/// Set by a warp whose wait failed. It goes on to take part in the barriers, which count every
/// warp; the block ends without a signal.
__device__ __forceinline__ volatile int* skinny_dead(const SkinnyGemmArgs& args) {
  return reinterpret_cast<int*>(skinny_shared() + args.shared.zeros + 16);
}

/// Whether a block of this launch begins before what it waits for is there.
__device__ __forceinline__ bool rehearses(const SyncHeader& h) {
  return (h.flags & (SyncHeader::kProgrammaticConsumer | SyncHeader::kWaits)) != 0;
}

/// The loader warp. Short on purpose: other blocks stream meanwhile, and each line of code that is
/// not in the cache stands in their queue.
__device__ inline void skinny_load(const SkinnyGemmArgs& args, const SyncHeader& header) {
  const SkinnyRing ring(args);
  if (threadIdx.x % 32 == 0) {
    TW_ROLLED_LOOP
    for (int s = 0; s < args.stages; ++s) {
      ptx::mbarrier_init(&ring.full[s], 1);
      ptx::mbarrier_init(&ring.empty[s], kSkinnyWarps);
    }
    ptx::mbarrier_init_fence();
  }
  __syncwarp();
  say_ring_ready();
  if (threadIdx.x % 32 != 0) return;
  const SkinnyGemmSchedule& s = args.schedule;
  const SkinnyWork work(s, skinny_work(header));
  const int first = work.k_begin / 16;               // fragments of a strip's own row
  const int count = (work.k_end + 15) / 16 - first;  // that this work takes of each strip
  const int strips = work.end_strip - work.first_strip;
  const auto* from =
      reinterpret_cast<const unsigned char*>(args.w.get()) +
      (static_cast<std::int64_t>(work.first_strip) * s.fragments() + first) * kFragmentBytes;
  const int stages_per_strip = (count + kPartFragments - 1) / kPartFragments;
  const int total = strips * stages_per_strip;
  const std::uint64_t policy = ptx::evict_first_policy();
  RingPlace at;
  RingPlace landing;
  int left = count;
  int issued = 0;
  TW_ROLLED_LOOP
  for (; issued < total; ++issued, at.next(args.stages)) {
    // A release at GPU scope waits for every bulk copy in flight on its SM, whoever issued it, so
    // there are never more than `window`. Copies depend on nothing and always land: no deadline.
    if (issued >= args.window) {
      while (!ptx::mbarrier_try_wait(&ring.full[landing.stage], landing.parity)) {
      }
      landing.next(args.stages);
    }
    if (issued >= args.stages && !wait_mbarrier(&ring.empty[at.stage], at.parity ^ 1U,
                                                static_cast<std::uint32_t>(at.stage), header)) {
      break;
    }
    const int fragments = left < kPartFragments ? left : kPartFragments;
    const auto bytes = static_cast<std::uint32_t>(fragments * kFragmentBytes);
    ptx::mbarrier_arrive_expect(&ring.full[at.stage], bytes);
    ptx::bulk_load_hint(ring.chunks + at.stage * kStageBytes, from, bytes, &ring.full[at.stage],
                        policy);
    from += bytes;
    left -= fragments;
    if (left == 0) {
      left = count;
      from += static_cast<std::int64_t>(s.fragments() - count) * kFragmentBytes;
    }
  }
  // Copies write to this block's shared memory: none may be in flight when it ends.
  TW_ROLLED_LOOP
  for (int i = issued < args.window ? issued : args.window; i > 0; --i, landing.next(args.stages)) {
    while (!ptx::mbarrier_try_wait(&ring.full[landing.stage], landing.parity)) {
    }
  }
}

template <int kColumnTiles, bool kNorm>
__global__ void __launch_bounds__(kSkinnyThreads, kColumnTiles >= 4 ? 1 : 2)
    skinny_gemm_sm90(const __grid_constant__ SkinnyGemmArgs args,
                     const __grid_constant__ SyncContext<SkinnyGemmOperands::kSlots> context) {
  using Operands = SkinnyGemmOperands;
  if (threadIdx.x >= kSkinnyConsumers) {
    skinny_load(args, context.header);
    return;
  }
  const SkinnyGemmSchedule& s = args.schedule;
  SkinnySync sync(context);
  if (!sync.begin_cta()) {
    ring_ready();  // the loader's barriers stay paired; its copies land without consumers
    return;
  }
  const SkinnyWork work(s, static_cast<int>(sync.remap(blockIdx.x)));
  SkinnyInput<kColumnTiles, kNorm> input(args, work);
  input.prologue();
  SkinnySums<kColumnTiles> sums(args);
  SkinnyResults<kColumnTiles> results(args);
  ring_ready();
  const float* residual = nullptr;
  const SkinnyRing ring(args);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint32_t own_fragments =
      ptx::shared_address(ring.chunks) + warp * kWarpFragments * kFragmentBytes + lane * 16;
  RingPlace at;
  bool alive = true;
  const int columns = kColumnTiles == 1 ? s.m : kColumnTiles * kSkinnyColumns;
  const int warp_sums = 16 * columns;
  float* const partial = reinterpret_cast<float*>(skinny_shared() + args.shared.partial);
  int buffer = 0;
  // Code and parameters that no cache near this SM holds come from memory, behind the weights that
  // everybody streams: a microsecond each, after the wait. So a block that has time before its wait
  // rehearses one part of a strip, without copies, results or signals.
  int rehearsal = rehearses(context.header) ? 1 : 0;
  TW_ROLLED_LOOP
  for (int strip = work.first_strip; strip < work.end_strip;
       strip += 1 - rehearsal, rehearsal = 0) {
    const int k_end = rehearsal != 0 ? min(work.k_begin + kPartColumns, work.k_end) : work.k_end;
    constexpr int kCount = SkinnyResults<kColumnTiles>::kCount;
    float total[kCount] = {};
    float span[kCount] = {};
    bool first_span = true;
    TW_ROLLED_LOOP
    for (int k = work.k_begin; k < k_end;) {
      if (rehearsal != 0) {
        input.bring(nullptr, k);
      } else if (strip == work.first_strip &&
                 (k == work.k_begin || (s.wait_k != 0 && k % s.wait_k == 0))) {
        const Ready ready =
            sync.wait_input(Operands::kSlotX, {0, s.wait_k == 0 ? 0 : k / s.wait_k});
        if (!ready) return;
        if (k == work.k_begin && args.residual.ptr != nullptr) {
          const Ready too = sync.wait_input(Operands::kSlotResidual, {0, work.group});
          if (!too) return;
          residual = args.residual.get(too);
        }
        input.bring(args.x.get(ready), k);
      }
      if (k == work.k_begin && s.split_k == 1) results.begin_strip(strip, residual);
      const int part = k / kPartColumns;
      float* const sums_here = partial + buffer;
      int count = 0;
      if constexpr (kColumnTiles > 2) SkinnyGroup::barrier();  // one buffer: it has been read
      TW_ROLLED_LOOP
      for (; count < args.parts_per_meet && k < k_end; ++count, k += kPartColumns) {
        if (rehearsal == 0) {
          alive = alive && wait_mbarrier(&ring.full[at.stage], at.parity,
                                         static_cast<std::uint32_t>(at.stage), context.header);
        }
        // A warp gives up for good once some lane has: its sums are worth nothing.
        alive = __all_sync(0xffffffffU, alive) != 0;
        const std::uint32_t w = own_fragments + at.stage * kStageBytes;
        const std::uint32_t x = (k - work.k_begin) * 2 + warp * kWarpFragments * 32;
        if (k + kPartColumns <= work.k_end) {
          sums.multiply(w, x);
        } else {
          sums.multiply_some(
              w, x, min(kWarpFragments, (work.k_end - k + 15) / 16 - warp * kWarpFragments));
        }
        __syncwarp();
        if (rehearsal == 0) {
          if (lane == 0) ptx::mbarrier_arrive(&ring.empty[at.stage]);
          at.next(args.stages);
        }
        sums.end_part(sums_here + (count * kSkinnyWarps + warp) * warp_sums);
      }
      if (!alive) *skinny_dead(args) = 1;  // said before the barrier, so that all learn of it
      // Two buffers: whoever writes this one again has passed the next barrier, and so have its
      // readers.
      SkinnyGroup::barrier();
      if constexpr (kColumnTiles <= 2) {
        buffer = args.parts_per_meet * kSkinnyWarps * warp_sums - buffer;
      }
      TW_ROLLED_LOOP
      for (int p = 0; p < count; ++p) {
        const float* from = sums_here + p * kSkinnyWarps * warp_sums;
        const bool span_begins = (part + p) % s.span_parts == 0;
        const bool span_ends =
            (part + p + 1) % s.span_parts == 0 || (part + p + 1) * kPartColumns >= work.k_end;
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          const int e = results.element(i);
          if (e < 0) continue;
          float sum = from[e];
#pragma unroll
          for (int w = 1; w < kSkinnyWarps; ++w) sum += from[w * warp_sums + e];
          span[i] = span_begins ? sum : span[i] + sum;
          if (!span_ends || rehearsal != 0) continue;
          if (s.split_k > 1) {
            skinny_partial(args, strip,
                           (part + p) / s.span_parts)[results.row(e) * s.m + results.token(e)] =
                span[i];
          } else {
            total[i] = first_span ? span[i] : total[i] + span[i];
          }
        }
        if (span_ends) first_span = false;
      }
    }
    if (s.split_k > 1) continue;
#pragma unroll
    for (int i = 0; i < kCount; ++i) results.put(i, strip, total[i], rehearsal == 0);
  }
  if (*skinny_dead(args) != 0) return;
  if (s.split_k > 1) {
    if (!sync.arrive_last(work.group, static_cast<std::uint32_t>(s.split_k))) return;
    add_spans(args, work, results, residual);
  }
  sync.signal_output(Operands::kSlotY, {0, work.group});
}

}  // namespace tileweave

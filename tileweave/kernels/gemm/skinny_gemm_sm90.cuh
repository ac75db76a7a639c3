// Skinny GEMM on sm_90: one warp streams packed weights through a ring by bulk copies, eight
// multiply. The loader waits for nothing but room in the ring, so it fills the ring before the
// first wait and runs ahead through every strip; the consumers' warps meet only at the end of a
// part of K.
#pragma once

#include <cstdint>

#include "tileweave/kernels/gemm/skinny_gemm_consumer.cuh"
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

/// Where things of the ring are: computed where they are needed, registers are few.
class SkinnyRing {
 public:
  __device__ __forceinline__ explicit SkinnyRing(const SkinnyGemmArgs& args) : args_(args) {}

  __device__ __forceinline__ unsigned char* chunk(int stage) const {
    return skinny_shared() + args_.shared.ring + stage * kStageBytes;
  }
  __device__ __forceinline__ std::uint64_t* full(int stage) const {
    return reinterpret_cast<std::uint64_t*>(skinny_shared() + args_.shared.barriers) + stage;
  }
  __device__ __forceinline__ std::uint64_t* empty(int stage) const {
    return full(args_.stages + stage);
  }

 private:
  const SkinnyGemmArgs& args_;
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

/// The loader warp. Short on purpose: other blocks stream meanwhile, and each line of code that is
/// not in the cache stands in their queue.
template <bool kSplit>
__device__ inline void skinny_load(const SkinnyGemmArgs& args, const SyncHeader& header) {
  const SkinnyRing ring(args);
  if (threadIdx.x % 32 == 0) {
    TW_ROLLED_LOOP
    for (int s = 0; s < args.stages; ++s) {
      ptx::mbarrier_init(ring.full(s), 1);
      ptx::mbarrier_init(ring.empty(s), kSkinnyWarps);
    }
    ptx::mbarrier_init_fence();
  }
  __syncwarp();
  say_ring_ready();
  if (threadIdx.x % 32 != 0) return;
  const SkinnyGemmSchedule& s = args.schedule;
  const SkinnyWork<kSplit> work(s, skinny_work(header));
  const int first = work.k_begin() / 16;               // fragments of a strip's own row
  const int count = (work.k_end() + 15) / 16 - first;  // that this work takes of each strip
  const int strips = work.end_strip() - work.first_strip();
  const auto* from =
      reinterpret_cast<const unsigned char*>(args.w.get()) +
      (static_cast<std::int64_t>(work.first_strip()) * s.fragments() + first) * kFragmentBytes;
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
      while (!ptx::mbarrier_try_wait(ring.full(landing.stage), landing.parity)) {
      }
      landing.next(args.stages);
    }
    if (issued >= args.stages && !wait_mbarrier(ring.empty(at.stage), at.parity ^ 1U,
                                                static_cast<std::uint32_t>(at.stage), header)) {
      break;
    }
    const int fragments = left < kPartFragments ? left : kPartFragments;
    const auto bytes = static_cast<std::uint32_t>(fragments * kFragmentBytes);
    ptx::mbarrier_arrive_expect(ring.full(at.stage), bytes);
    ptx::bulk_load_hint(ring.chunk(at.stage), from, bytes, ring.full(at.stage), policy);
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
    while (!ptx::mbarrier_try_wait(ring.full(landing.stage), landing.parity)) {
    }
  }
}

/// The ring as the consumers see it.
class RingWeights {
 public:
  __device__ __forceinline__ RingWeights(const SkinnyGemmArgs& args, const SyncHeader& header)
      : args_(args), ring_(args), header_(header) {
    const int thread = static_cast<int>(threadIdx.x);
    own_ = ptx::shared_address(ring_.chunk(0)) +
           thread / 32 * kWarpFragments * static_cast<int>(kFragmentBytes) + thread % 32 * 16;
  }
  __device__ __forceinline__ bool wait() {
    const bool got = wait_mbarrier(ring_.full(at_.stage), at_.parity,
                                   static_cast<std::uint32_t>(at_.stage), header_);
    return __all_sync(0xffffffffU, got) != 0;
  }
  __device__ __forceinline__ std::uint32_t fragments() const {
    return own_ + at_.stage * kStageBytes;
  }
  /// The lanes' reads come before the warp's meeting, that before the arrival, and the loader waits
  /// for eight of those before it lets a copy overwrite the stage. (racecheck of compute-sanitizer
  /// does not follow a warp's meeting into an arrival, and reports the copies.)
  __device__ __forceinline__ void release() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(ring_.empty(at_.stage));
    at_.next(args_.stages);
  }

 private:
  const SkinnyGemmArgs& args_;
  SkinnyRing ring_;
  const SyncHeader& header_;
  std::uint32_t own_;
  RingPlace at_;
};

template <int kTokens, bool kNorm, bool kSplit>
__global__ void __launch_bounds__(kSkinnyThreads, kTokens > 16 ? 1 : 2)
    skinny_gemm_sm90(const __grid_constant__ SkinnyGemmArgs args,
                     const __grid_constant__ SyncContext<SkinnyGemmOperands::kSlots> context) {
  if (threadIdx.x >= kSkinnyConsumers) {
    skinny_load<kSplit>(args, context.header);
    return;
  }
  SkinnySync sync(context);
  if (!sync.begin_cta()) {
    ring_ready();  // the loader's barriers stay paired; its copies land without consumers
    return;
  }
  const SkinnyWork<kSplit> work(args.schedule, static_cast<int>(sync.remap(blockIdx.x)));
  SkinnyInput<kTokens, kNorm, kSplit> input(args, work);
  input.prologue();
  ring_ready();
  RingWeights weights(args, context.header);
  skinny_consume<kTokens, kNorm, kSplit>(args, sync, work, input, weights);
}

}  // namespace tileweave

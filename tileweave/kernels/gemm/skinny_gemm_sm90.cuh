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
  const int work = skinny_work(header);
  const int first = s.first_k(work) / 16;               // fragments of a strip's own row
  const int count = (s.end_k(work) + 15) / 16 - first;  // that this work takes of each strip
  const int strips = s.end_strip(work) - s.first_strip(work);
  const auto* from =
      reinterpret_cast<const unsigned char*>(args.w.get()) +
      (static_cast<std::int64_t>(s.first_strip(work)) * s.fragments() + first) * kFragmentBytes;
  const int chunks_per_strip = (count + kChunkFragments - 1) / kChunkFragments;
  const int total = strips * chunks_per_strip;
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
    const int fragments = left < kChunkFragments ? left : kChunkFragments;
    const auto bytes = static_cast<std::uint32_t>(fragments * kFragmentBytes);
    ptx::mbarrier_arrive_expect(&ring.full[at.stage], bytes);
    ptx::bulk_load_hint(ring.chunks + at.stage * kChunkBytes, from, bytes, &ring.full[at.stage],
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
__global__ void __launch_bounds__(kSkinnyThreads, kColumnTiles == 8 ? 1 : 2)
    skinny_gemm_sm90(const __grid_constant__ SkinnyGemmArgs args,
                     const __grid_constant__ SyncContext<SkinnyGemmOperands::kSlots> context) {
  if (threadIdx.x >= kSkinnyConsumers) {
    skinny_load(args, context.header);
    return;
  }
  SkinnySync sync(context);
  const bool go = sync.begin_cta();
  if (!go) {
    ring_ready();  // the loader's barriers stay paired; its copies land without consumers
    return;
  }
  const int work = static_cast<int>(sync.remap(blockIdx.x));
  SkinnyConsumer<kColumnTiles, kNorm> consumer(args, sync, work);
  consumer.prologue();
  ring_ready();
  if (!consumer.start()) return;
  const SkinnyGemmSchedule& s = args.schedule;
  const SkinnyRing ring(args);
  const std::uint32_t chunks = ptx::shared_address(ring.chunks);
  RingPlace at;
  bool alive = true;
  TW_ROLLED_LOOP
  for (int strip = s.first_strip(work); strip < s.end_strip(work); ++strip) {
    const bool first_strip = strip == s.first_strip(work);
    TW_ROLLED_LOOP
    for (int k = consumer.k_begin(); k < consumer.k_end(); k += kChunkColumns) {
      if (first_strip && !consumer.enter_chunk(k)) return;
      if (alive) {
        const bool got = wait_mbarrier(&ring.full[at.stage], at.parity,
                                       static_cast<std::uint32_t>(at.stage), context.header);
        alive = __all_sync(0xffffffffU, got) != 0;
        if (!alive) consumer.give_up();
      }
      if (alive) {
        const int columns = min(kChunkColumns, consumer.k_end() - k);
        consumer.multiply(chunks + at.stage * kChunkBytes, k, (columns + 15) / 16);
        __syncwarp();
        if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&ring.empty[at.stage]);
        at.next(args.stages);
      }
      const int next = k + kChunkColumns;
      if (next % kPartColumns == 0 || next >= consumer.k_end()) {
        const int part = k / kPartColumns;
        consumer.end_part(strip, part, part == s.first_part(work));
      }
    }
    consumer.end_strip(strip);
  }
  consumer.finish();
}

}  // namespace tileweave

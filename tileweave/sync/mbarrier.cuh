// Shared-memory barriers (mbarrier) and bulk copies, with the same bounded wait as semaphores.
//
// A consumer that sits in an mbarrier must also leave when a producer warp gave up: the wait is a
// try loop that looks at the abort word and the deadline. An aborted block starts no loads and
// drains the bulk copies already in flight before it returns (their barrier lives in its shared
// memory). sm_90 and later.
#pragma once

#include <cstdint>

#include "tileweave/core/target.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/wait.h"

namespace tileweave::ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ __forceinline__ void mbarrier_init(std::uint64_t* barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}
/// Makes initialised barriers visible to bulk copies; then a block barrier for the other threads.
__device__ __forceinline__ void mbarrier_init_fence() {
  if constexpr (TW_SM90) asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void mbarrier_arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/// Arrives and announces `bytes` of bulk copies that will complete on the barrier.
__device__ __forceinline__ void mbarrier_arrive_expect(std::uint64_t* barrier,
                                                       std::uint32_t bytes) {
  if constexpr (TW_SM90) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
  }
}
/// Tries for a hardware-limited time; true when the phase of `parity` has completed.
__device__ __forceinline__ bool mbarrier_try_wait(std::uint64_t* barrier, std::uint32_t parity) {
  std::uint32_t done = 0;
  if constexpr (TW_SM90) {
    asm volatile(
        "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
        " selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
  return done != 0;
}
/// Global -> shared copy by the bulk engine; size and addresses are multiples of 16 bytes.
__device__ __forceinline__ void bulk_load(void* shared, const void* global, std::uint32_t bytes,
                                          std::uint64_t* barrier) {
  if constexpr (TW_SM90) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(shared)),
        "l"(global), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
  }
}

}  // namespace tileweave::ptx

namespace tileweave {

/// The part of wait_mbarrier that outlasts the first try: out of line, as in sync/wait.h.
TW_NO_INLINE __device__ inline bool wait_mbarrier_long(std::uint64_t* barrier, std::uint32_t parity,
                                                       std::uint32_t stage,
                                                       const SyncHeader& header) {
  AtomicsCudaWarp atomics;
  WaitClock<AtomicsCudaWarp> clock;
  const WaitSite site{.kind = WaitKind::kMbarrier, .operand = 0, .tile = stage};
  TW_ROLLED_LOOP
  for (;;) {
    if (ptx::mbarrier_try_wait(barrier, parity)) return true;
    if (!clock.keep_waiting(atomics, site, 0, header)) return false;
  }
}

/// Waits for the phase of `parity`. False: the run is aborted (the phase may be incomplete).
__device__ __forceinline__ bool wait_mbarrier(std::uint64_t* barrier, std::uint32_t parity,
                                              std::uint32_t stage, const SyncHeader& header) {
  if (ptx::mbarrier_try_wait(barrier, parity)) return true;
  return wait_mbarrier_long(barrier, parity, stage, header);
}

}  // namespace tileweave

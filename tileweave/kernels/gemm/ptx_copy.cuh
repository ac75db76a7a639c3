// PTX for copies from global to shared memory: cp.async (sm_80) and bulk copies with an eviction
// hint (sm_90).
#pragma once

#include <cstdint>

#include "tileweave/core/target.h"
#include "tileweave/sync/mbarrier.cuh"

namespace tileweave::ptx {

/// 16 bytes past the L1 cache; both addresses are multiples of 16.
__device__ __forceinline__ void copy_async_16(std::uint32_t shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}
/// 8 bytes; both addresses are multiples of 8.
__device__ __forceinline__ void copy_async_8(std::uint32_t shared, const void* global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared), "l"(global) : "memory");
}
/// copy_async_16, or 16 zeros where there is nothing to read; `global` is a valid address either
/// way.
__device__ __forceinline__ void copy_async_16_or_zeros(std::uint32_t shared, const void* global,
                                                       bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(exists ? 16 : 0)
               : "memory");
}
/// The barrier gets one of its expected arrivals when all earlier copies of this thread have
/// landed.
__device__ __forceinline__ void copy_async_arrive(std::uint64_t* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
__device__ __forceinline__ void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Returns when all but the `kPending` newest groups of this thread have landed.
template <int kPending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// Plain store. Does not keep loads of other addresses from being issued first.
__device__ __forceinline__ void store_shared_16(std::uint32_t shared, const uint4& value) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(value.x), "r"(value.y),
               "r"(value.z), "r"(value.w));
}

/// Cache policy of data that is read once: it leaves the L2 cache first.
__device__ __forceinline__ std::uint64_t evict_first_policy() {
  std::uint64_t policy = 0;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
/// copy_async_16 of data with a cache policy.
__device__ __forceinline__ void copy_async_16_hint(std::uint32_t shared, const void* global,
                                                   std::uint64_t policy) {
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(shared),
               "l"(global), "l"(policy)
               : "memory");
}
/// bulk_load of data with a cache policy.
__device__ __forceinline__ void bulk_load_hint(void* shared, const void* global,
                                               std::uint32_t bytes, std::uint64_t* barrier,
                                               std::uint64_t policy) {
  if constexpr (TW_SM90) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
        "[%1], %2, [%3], %4;" ::"r"(shared_address(shared)),
        "l"(global), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
        : "memory");
  }
}

}  // namespace tileweave::ptx

// PTX for memory order: acquire loads, release adds, proxy fences. One spelling each.
//
// `.gpu` inside one GPU; `.sys` for words shared with peers or with library kernels that may run in
// another memory synchronisation domain. Every asm that orders memory clobbers "memory", or the
// compiler could hoist data loads above the poll.
#pragma once

#include <cstdint>

#include "tileweave/core/target.h"

namespace tileweave::ptx {

__device__ __forceinline__ std::uint32_t load_acquire_gpu(const std::uint32_t* word) {
  std::uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
__device__ __forceinline__ std::uint32_t load_acquire_sys(const std::uint32_t* word) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
__device__ __forceinline__ std::uint32_t load_relaxed_gpu(const std::uint32_t* word) {
  std::uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word));
  return value;
}
__device__ __forceinline__ void add_release_gpu(std::uint32_t* word, std::uint32_t n) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(word), "r"(n) : "memory");
}
__device__ __forceinline__ void add_release_sys(std::uint32_t* word, std::uint32_t n) {
  asm volatile("red.release.sys.global.add.u32 [%0], %1;" ::"l"(word), "r"(n) : "memory");
}
__device__ __forceinline__ void add_relaxed_gpu(std::uint32_t* word, std::uint32_t n) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(word), "r"(n));
}
__device__ __forceinline__ std::uint32_t fetch_add_relaxed_gpu(std::uint32_t* word,
                                                               std::uint32_t n) {
  std::uint32_t before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(n));
  return before;
}
__device__ __forceinline__ std::uint32_t fetch_add_acq_rel_gpu(std::uint32_t* word,
                                                               std::uint32_t n) {
  std::uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(word), "r"(n)
               : "memory");
  return before;
}
__device__ __forceinline__ std::uint32_t compare_and_swap_gpu(std::uint32_t* word,
                                                              std::uint32_t expected,
                                                              std::uint32_t value) {
  std::uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], %2, %3;"
               : "=r"(before)
               : "l"(word), "r"(expected), "r"(value)
               : "memory");
  return before;
}
__device__ __forceinline__ void store_release_sys(std::uint32_t* word, std::uint32_t value) {
  asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

/// Orders generic-proxy accesses (here: the acquire) before bulk and tensor copies of this thread.
__device__ __forceinline__ void fence_proxy_async() {
  if constexpr (TW_SM90) asm volatile("fence.proxy.async;" ::: "memory");
}
/// The same for the block's shared memory alone: waits for no copy from global memory.
__device__ __forceinline__ void fence_proxy_async_shared() {
  if constexpr (TW_SM90) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace tileweave::ptx

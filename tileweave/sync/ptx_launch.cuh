// PTX for clocks and launch control: programmatic dependent launch, timers, SM index.
//
// `griddepcontrol` exists from sm_90 on; before that a kernel is never launched programmatically,
// so both calls compile to nothing.
#pragma once

#include <cstdint>

#include "tileweave/core/target.h"

namespace tileweave::ptx {

__device__ __forceinline__ void griddep_launch_dependents() {
  if constexpr (TW_SM90) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
/// Returns when every kernel this grid depends on has completed and flushed its writes.
__device__ __forceinline__ void griddep_wait() {
  if constexpr (TW_SM90) asm volatile("griddepcontrol.wait;" ::: "memory");
}
__device__ __forceinline__ std::uint64_t global_timer_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
__device__ __forceinline__ std::uint32_t sm_index() {
  std::uint32_t sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}

}  // namespace tileweave::ptx

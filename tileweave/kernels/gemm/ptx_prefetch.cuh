// PTX that brings memory near without reading it.
#pragma once

namespace tileweave::ptx {

/// Starts moving the line that holds `address` into L2. Only for data no one writes in this run.
__device__ inline void prefetch_l2(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

}  // namespace tileweave::ptx

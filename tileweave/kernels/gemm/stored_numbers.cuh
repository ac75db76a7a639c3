// Numbers of f32 or bf16 tensors, as products read and write them.
#pragma once

#include <cstdint>

#include "tileweave/core/dtype.h"

namespace tileweave {

__device__ __forceinline__ float load_number(const void* from, DType type, int i) {
  return type == DType::kF32 ? static_cast<const float*>(from)[i]
                             : to_float(static_cast<const BFloat16*>(from)[i]);
}

/// x / (1 + e^-x), some units in the last place off. One function, so that products have the same
/// bits whichever kernel makes them.
__device__ __forceinline__ float silu(float x) {
  return __fdividef(x, 1.0F + __expf(-x));
}

/// Two bf16, the first in the low half.
__device__ __forceinline__ std::uint32_t pack_bf16(float first, float second) {
  std::uint32_t both = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
}

}  // namespace tileweave

// Loads of eight neighbouring elements of a row as fp32, for the shared-memory panels of a GEMM.
//
// Plain coherent loads: what they read may have been produced during the run by another kernel.
// 16-byte loads where all eight elements exist and lie aligned, else one by one with zeros beyond
// the edge.
#pragma once

#include <cstdint>

#include "tileweave/core/dtype.h"

namespace tileweave {

inline constexpr int kLoadWidth = 8;

__device__ inline void load_aligned(const float* from, float (&to)[kLoadWidth]) {
  const float4 low = *reinterpret_cast<const float4*>(from);
  const float4 high = *reinterpret_cast<const float4*>(from + 4);
  to[0] = low.x;
  to[1] = low.y;
  to[2] = low.z;
  to[3] = low.w;
  to[4] = high.x;
  to[5] = high.y;
  to[6] = high.z;
  to[7] = high.w;
}

__device__ inline void load_aligned(const BFloat16* from, float (&to)[kLoadWidth]) {
  const uint4 words = *reinterpret_cast<const uint4*>(from);
  const std::uint32_t word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = __uint_as_float(word[i] << 16);
    to[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000U);
  }
}

/// Elements [0, valid) of `from`, zeros beyond; valid may be 0 or less.
template <class T>
__device__ inline void load_row(const T* from, std::int64_t valid, float (&to)[kLoadWidth]) {
  if (valid >= kLoadWidth && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
    load_aligned(from, to);
    return;
  }
#pragma unroll
  for (int i = 0; i < kLoadWidth; ++i) to[i] = i < valid ? to_float(from[i]) : 0.0F;
}

}  // namespace tileweave

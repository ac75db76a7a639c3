// A few neighbouring elements of a row between memory and fp32 registers, 16 bytes at a time.
//
// Loads come apart from conversions (`Packed` holds elements as they lie in memory), so that a
// kernel has all its loads on their way before it needs the first. Plain coherent loads: what they
// read may have been produced during the run by another kernel. `load_packed` and `store_packed`
// want addresses aligned to 16 bytes (or to the whole size, if that is less); `load_some` and
// `store_some` take any address and stop at the edge.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "tileweave/core/dtype.h"

namespace tileweave {

__device__ __forceinline__ bool is_aligned(const void* address, std::uintptr_t bytes = 16) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

template <class T, int N>
struct Packed {
  static constexpr int kWords = N * static_cast<int>(sizeof(T)) / 4;
  static_assert(kWords * 4 == N * static_cast<int>(sizeof(T)) && kWords % 2 == 0);
  std::uint32_t word[kWords];
};

template <int N, class T>
__device__ __forceinline__ Packed<T, N> load_packed(const T* from) {
  Packed<T, N> packed;
  if constexpr (packed.kWords % 4 == 0) {
#pragma unroll
    for (int i = 0; i < packed.kWords / 4; ++i) {
      const uint4 words = reinterpret_cast<const uint4*>(from)[i];
      packed.word[4 * i] = words.x;
      packed.word[4 * i + 1] = words.y;
      packed.word[4 * i + 2] = words.z;
      packed.word[4 * i + 3] = words.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < packed.kWords / 2; ++i) {
      const uint2 words = reinterpret_cast<const uint2*>(from)[i];
      packed.word[2 * i] = words.x;
      packed.word[2 * i + 1] = words.y;
    }
  }
  return packed;
}

template <class T, int N>
__device__ __forceinline__ void store_packed(T* to, const Packed<T, N>& packed) {
  if constexpr (packed.kWords % 4 == 0) {
#pragma unroll
    for (int i = 0; i < packed.kWords / 4; ++i) {
      reinterpret_cast<uint4*>(to)[i] = {packed.word[4 * i], packed.word[4 * i + 1],
                                         packed.word[4 * i + 2], packed.word[4 * i + 3]};
    }
  } else {
#pragma unroll
    for (int i = 0; i < packed.kWords / 2; ++i) {
      reinterpret_cast<uint2*>(to)[i] = {packed.word[2 * i], packed.word[2 * i + 1]};
    }
  }
}

template <int N>
__device__ __forceinline__ void unpack(const Packed<float, N>& packed, float (&to)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = __uint_as_float(packed.word[i]);
}

template <int N>
__device__ __forceinline__ void unpack(const Packed<BFloat16, N>& packed, float (&to)[N]) {
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    to[2 * i] = __uint_as_float(packed.word[i] << 16);
    to[2 * i + 1] = __uint_as_float(packed.word[i] & 0xffff0000U);
  }
}

template <int N>
__device__ __forceinline__ void unpack(const Packed<Float16, N>& packed, float (&to)[N]) {
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const __half_raw low{static_cast<unsigned short>(packed.word[i] & 0xffffU)};
    const __half_raw high{static_cast<unsigned short>(packed.word[i] >> 16)};
    to[2 * i] = __half2float(__half(low));
    to[2 * i + 1] = __half2float(__half(high));
  }
}

template <class T, int N>
struct Packer;
template <int N>
struct Packer<float, N> {
  __device__ __forceinline__ static Packed<float, N> pack(const float (&values)[N]) {
    Packed<float, N> packed;
#pragma unroll
    for (int i = 0; i < N; ++i) packed.word[i] = __float_as_uint(values[i]);
    return packed;
  }
};
template <int N>
struct Packer<BFloat16, N> {
  __device__ __forceinline__ static Packed<BFloat16, N> pack(const float (&values)[N]) {
    Packed<BFloat16, N> packed;
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      const __nv_bfloat162_raw pair = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
      packed.word[i] = pair.x | static_cast<std::uint32_t>(pair.y) << 16;
    }
    return packed;
  }
};

/// Rounds to T, to nearest, ties to even.
template <class T, int N>
__device__ __forceinline__ Packed<T, N> pack(const float (&values)[N]) {
  return Packer<T, N>::pack(values);
}

/// Elements [0, valid) of `from`, zeros beyond; valid may be 0 or less.
template <class T, int N>
__device__ __forceinline__ void load_some(const T* from, std::int64_t valid, float (&to)[N]) {
  if (valid >= N && is_aligned(from)) {
    unpack(load_packed<N>(from), to);
    return;
  }
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = i < valid ? to_float(from[i]) : 0.0F;
}

/// Writes elements [0, valid) of `to`; valid may be 0 or less.
template <class T, int N>
__device__ __forceinline__ void store_some(T* to, std::int64_t valid, const float (&values)[N]) {
  if (valid >= N && is_aligned(to)) {
    store_packed(to, pack<T>(values));
    return;
  }
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i < valid) to[i] = from_float<T>(values[i]);
  }
}

}  // namespace tileweave

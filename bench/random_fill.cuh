// Random operands of benchmarks, made where they are used.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "tileweave/core/error.h"

namespace tileweave::bench {

namespace detail {

static __global__ void fill_kernel(__nv_bfloat16* to, std::int64_t count, float amplitude,
                                   std::uint64_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    std::uint64_t h = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL + seed;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
    h ^= h >> 31;
    const float unit = static_cast<float>(h >> 40) * (1.0F / 8388608.0F) - 1.0F;
    to[i] = __float2bfloat16(unit * amplitude);
  }
}

}  // namespace detail

/// Fills device memory with bf16 values in [-amplitude, amplitude], a function of index and seed.
inline void fill_random_bf16(void* device, std::int64_t count, float amplitude,
                             std::uint64_t seed) {
  detail::fill_kernel<<<1056, 256>>>(static_cast<__nv_bfloat16*>(device), count, amplitude, seed);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) {
    throw Error("fill with random values", "a launch that works", cudaGetErrorString(error));
  }
}

}  // namespace tileweave::bench

// What the threads of a sampling block do together: sums in a fixed order, maxima, passes over a
// row of scores in its scratch.
#pragma once

#include <cstdint>

#include "tileweave/kernels/sampling/ordered_key.cuh"
#include "tileweave/kernels/sampling/sample_args.h"

namespace tileweave {

inline constexpr int kSampleWarps = kSampleThreads / 32;
inline constexpr int kSampleBins = 2048;                  // of the radix selection
inline constexpr int kSampleSorted = 4 * kSampleThreads;  // candidates that are sorted outright
static_assert(kSampleBins == 4 * kSampleThreads && (kSampleSorted & (kSampleSorted - 1)) == 0);

struct SampleShared {
  double sums[kSampleWarps];
  std::uint64_t maxima[kSampleWarps];
  std::uint32_t counts[kSampleWarps];
  std::uint32_t bin, rest;  // of the radix selection
  std::uint32_t cuts[2];    // bins of the search for top-p's boundary
  std::uint32_t found;      // first of the sorted candidates that stays
  std::uint32_t gathered;
  union {
    std::uint32_t histogram[kSampleBins];
    std::uint64_t orders[kSampleSorted];
  };
};

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffU, value, distance);
  }
  return value;
}

/// Sums of the lanes up to this one.
template <class T>
__device__ __forceinline__ T warp_inclusive_sum(T value) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const T other = __shfl_up_sync(0xffffffffU, value, distance);
    if (static_cast<int>(threadIdx.x % 32) >= distance) value += other;
  }
  return value;
}

/// Sum over the block, the same bits in every thread. `of_warp` is free again afterwards.
template <class T>
__device__ T block_sum(T (&of_warp)[kSampleWarps], T value) {
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  T sum = 0;
#pragma unroll
  for (int w = 0; w < kSampleWarps; ++w) sum += of_warp[w];
  __syncthreads();
  return sum;
}

/// Sum over the threads before this one. `of_warp` is free again afterwards.
template <class T>
__device__ T block_sum_before(T (&of_warp)[kSampleWarps], T value) {
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const T inclusive = warp_inclusive_sum(value);
  if (lane == 31) of_warp[warp] = inclusive;
  T before = __shfl_up_sync(0xffffffffU, inclusive, 1);
  if (lane == 0) before = 0;
  __syncthreads();
  T of_warps = 0;
  for (int w = 0; w < warp; ++w) of_warps += of_warp[w];
  __syncthreads();
  return of_warps + before;
}

__device__ __forceinline__ std::uint64_t block_max(std::uint64_t (&of_warp)[kSampleWarps],
                                                   std::uint64_t value) {
  value = warp_max(value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  std::uint64_t most = 0;
#pragma unroll
  for (int w = 0; w < kSampleWarps; ++w) most = most < of_warp[w] ? of_warp[w] : most;
  __syncthreads();
  return most;
}

/// Calls `use(score, id)` for the elements of quads from, from + kStride, ... below `end`, in
/// ascending order, with two loads on their way at a time.
template <int kStride, class Use>
__device__ __forceinline__ void visit(const float* scores, std::int32_t from, std::int32_t end,
                                      const Use& use) {
  constexpr int kInFlight = 2;  // with those of the other warps, as much as an SM gets in the time
  const auto* const quads = reinterpret_cast<const float4*>(scores);
  for (; from < end; from += kInFlight * kStride) {
    float4 quad[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      quad[u] = quads[min(from + u * kStride, end - 1)];
    }
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const std::int32_t at = from + u * kStride;
      if (at >= end) break;
      use(quad[u].x, 4 * at);
      use(quad[u].y, 4 * at + 1);
      use(quad[u].z, 4 * at + 2);
      use(quad[u].w, 4 * at + 3);
    }
  }
}

/// The same for all of a row, over the block.
template <class Use>
__device__ __forceinline__ void visit_row(const float* scores, std::int32_t quads, const Use& use) {
  visit<kSampleThreads>(scores, static_cast<std::int32_t>(threadIdx.x), quads, use);
}

/// Place in the order in which top-p takes candidates away.
__device__ __forceinline__ std::uint64_t order_of(std::uint32_t key, std::int32_t id) {
  return std::uint64_t{key} << 32 | static_cast<std::uint32_t>(id);
}
__device__ __forceinline__ std::uint64_t order_of(float score, std::int32_t id) {
  return order_of(ordered_key(score), id);
}

/// exp(score - highest), exactly 1 where they are equal, both infinite included.
__device__ __forceinline__ float weight_of(float score, float highest) {
  return score == highest ? 1.0F : expf(score - highest);
}

/// Sorts the first `count` (a power of two) ascending. Begins and ends with a barrier.
__device__ inline void sort_orders(std::uint64_t* orders, std::uint32_t count) {
  __syncthreads();
  for (std::uint32_t run = 2; run <= count; run *= 2) {
    for (std::uint32_t distance = run / 2; distance > 0; distance /= 2) {
      for (std::uint32_t i = threadIdx.x; i < count; i += kSampleThreads) {
        const std::uint32_t j = i ^ distance;
        if (j < i) continue;
        const std::uint64_t a = orders[i], b = orders[j];
        if ((a > b) == ((i & run) == 0)) {
          orders[i] = b;
          orders[j] = a;
        }
      }
      __syncthreads();
    }
  }
}

}  // namespace tileweave

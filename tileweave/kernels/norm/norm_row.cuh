// What the CUDA RMSNorm kernels share: one block per row, 256 threads of 8 elements each.
//
// Thread t holds elements 8 t + 2048 c + [0, 8) for c = 0, 1, ...; the squares of a chunk, then the
// chunks are added in ascending order; lanes meet in a butterfly, the warps' sums are added in
// ascending order: the bits of a row depend on the row alone. Rows of up to 8192 elements stay in
// registers, with all loads on their way at once; longer ones, and rows that are not aligned to 16
// bytes, are read twice.
#pragma once

#include <cstdint>

#include "tileweave/core/packed_elements.cuh"

namespace tileweave {

struct NormRow {
  static constexpr int kThreads = 256;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kWidth = 8;
  static constexpr int kChunks = 4;
  static constexpr int kStep = kThreads * kWidth;

  /// Sums of the warps. Two sets: while slow warps still read those of a row, fast ones write those
  /// of the next.
  struct Shared {
    float sums[2][kWarps];
  };

  /// Whether rows of `cols` elements at these addresses fit the registers.
  template <class... T>
  __device__ static bool fits(std::int64_t cols, const T*... rows) {
    return cols <= kStep * kChunks && cols % kWidth == 0 && (... && is_aligned(rows));
  }

  __device__ static int column(int chunk) {
    return static_cast<int>(threadIdx.x) * kWidth + chunk * kStep;
  }

  __device__ static float inverse(std::int64_t cols) { return __frcp_rn(static_cast<float>(cols)); }

  /// This thread's chunks of a row, zeros beyond its end.
  template <class T>
  __device__ __forceinline__ static void load(const T* row, int cols,
                                              Packed<T, kWidth> (&chunks)[kChunks]) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      chunks[c] = {};
      if (column(c) < cols) chunks[c] = load_packed<kWidth>(row + column(c));
    }
  }

  /// The chunk times `scale` times the weight, as elements of Y.
  template <class W, class Y>
  __device__ __forceinline__ static Packed<Y, kWidth> scaled(const float (&values)[kWidth],
                                                             float scale,
                                                             const Packed<W, kWidth>& weight) {
    float w[kWidth];
    unpack(weight, w);
    float y[kWidth];
#pragma unroll
    for (int e = 0; e < kWidth; ++e) y[e] = values[e] * scale * w[e];
    return pack<Y>(y);
  }

  /// Chunks are summed on their own first: their chains of dependent additions run side by side.
  __device__ __forceinline__ static float squares_of(const float (&values)[kWidth]) {
    float squares = values[0] * values[0];
#pragma unroll
    for (int e = 1; e < kWidth; ++e) squares = fmaf(values[e], values[e], squares);
    return squares;
  }

  /// 1 / sqrt(mean + eps) of the row whose squares the block's threads have added up. `turn`
  /// counts the rows of the block.
  __device__ __forceinline__ static float scale_of(float squares, float inverse_cols, float eps,
                                                   Shared& shared, unsigned turn) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      squares += __shfl_xor_sync(0xffffffffU, squares, distance);
    }
    float(&sums)[kWarps] = shared.sums[turn % 2];
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = squares;
    __syncthreads();
    float sum = sums[0];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) sum += sums[w];
    return rsqrtf(fmaf(sum, inverse_cols, eps));
  }
};

}  // namespace tileweave

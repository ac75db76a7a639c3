// GEMM on a GPU in its simple form: fp32 FMA on 64 x 64 sub-tiles, panels in shared memory.
//
// Any architecture from sm_80, any shape and tile size; the reference of faster forms on the GPU. A
// block walks its C tile in sub-tiles of 64 x 64; 256 threads hold 4 x 4 results each. Every result
// takes its products in ascending k by fused multiply-add, so the bits do not depend on the tiles
// around it. What may be produced during the run is read by plain loads after the wait.
#pragma once

#include <cstdint>

#include "tileweave/kernels/gemm/gemm_args.h"
#include "tileweave/kernels/gemm/gemm_load.cuh"
#include "tileweave/kernels/gemm/ptx_prefetch.cuh"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

template <class T, class C>
class GemmBlockCuda {
 public:
  using Sync = SyncCta<AtomicsCuda, GemmOperands::kCount>;
  static constexpr int kSub = 64;    // rows and columns of a sub-tile
  static constexpr int kDepth = 32;  // chunk of K
  static constexpr int kPad = 4;     // floats between rows of a panel: fewer bank conflicts

  struct Shared {
    float a[kDepth][kSub + kPad];  // A transposed: k first
    float b[kDepth][kSub + kPad];
  };
  static_assert(sizeof(Shared) == kGemmSharedBytes);
  static_assert(kGemmThreads == kSub * kSub / 16);

  __device__ GemmBlockCuda(const GemmArgs<T, T, C>& args, Sync& sync, Shared& shared)
      : args_(args), s_(args.schedule), sync_(sync), shared_(shared) {}

  /// Starts moving a constant B into L2 ahead of the first wait.
  __device__ void prefetch(std::int64_t work) {
    constexpr std::int64_t kLine = 128 / sizeof(T);
    if (args_.prefetch_k == 0) return;
    const GemmSegment part = s_.segment(work, s_.first_tile(work));
    const Box box = s_.tile_box(part.tile);
    const std::int64_t depth = min64(args_.prefetch_k, part.k_end - part.k_begin);
    const bool k_first = args_.b_layout == BLayout::kKxN;
    const std::int64_t rows = k_first ? depth : box.size[1];
    const std::int64_t cols = k_first ? box.size[1] : depth;
    const T* corner = k_first ? args_.b_stable.get() + part.k_begin * s_.n + box.begin[1]
                              : args_.b_stable.get() + box.begin[1] * s_.k + part.k_begin;
    const std::int64_t lines = ceil_div(cols, kLine);
    for (std::int64_t i = threadIdx.x; i < rows * lines; i += kGemmThreads) {
      ptx::prefetch_l2(corner + i / lines * b_stride() + i % lines * kLine);
    }
  }

  /// False: the run is aborted.
  __device__ bool run(std::int64_t work) {
    const std::int64_t last = s_.last_tile(work);
    for (std::int64_t tile = s_.first_tile(work); tile <= last; ++tile) {
      if (!run_segment(s_.segment(work, tile))) return false;
    }
    return true;
  }

 private:
  __device__ bool run_segment(const GemmSegment& part) {
    const Box tile = s_.tile_box(part.tile);
    for (std::int64_t i = 0; i < tile.size[0]; i += kSub) {
      for (std::int64_t j = 0; j < tile.size[1]; j += kSub) {
        if (!run_sub_tile(part, tile, i, j)) return false;
      }
    }
    if (s_.split != GemmSplit::kTiles) {
      if (!sync_.arrive_last(part.tile, static_cast<std::uint32_t>(part.contributions))) {
        return true;
      }
      if (part.contributions > 1) sum_partials(part.tile, tile);
    }
    sync_.signal_output(GemmOperands::kC, s_.c_tile(part.tile));
    return true;
  }

  __device__ Ready wait(std::int64_t tile, std::int64_t k) {
    const Ready ready = sync_.wait_input(GemmOperands::kA, s_.a_tile(tile, k));
    if (!ready || !args_.b_is_produced()) return ready;
    return sync_.wait_input(GemmOperands::kB, args_.b_tile(tile, k));
  }

  /// C[sub-tile at (i, j) of the tile] over the k of `part`. The first sub-tile waits for all that
  /// the segment reads, later ones find it ready.
  __device__ bool run_sub_tile(const GemmSegment& part, const Box& tile, std::int64_t i,
                               std::int64_t j) {
    const std::int64_t row = tile.begin[0] + i;
    const std::int64_t col = tile.begin[1] + j;
    const std::int64_t rows = min64(kSub, tile.size[0] - i);
    const std::int64_t cols = min64(kSub, tile.size[1] - j);
    const bool waits = i == 0 && j == 0;
    float acc[4][4] = {};
    Ready ready(true);
    for (std::int64_t k = part.k_begin; k < part.k_end;) {
      if (waits && s_.waits_at(part, k)) {
        ready = wait(part.tile, k);
        if (!ready) return false;
      }
      const std::int64_t end = min64(min64(k + kDepth, s_.slice_end(k)), part.k_end);
      load_a(args_.a.get(ready) + row * s_.k + k, rows, end - k);
      load_b(args_.b(ready), col, cols, k, end - k);
      __syncthreads();
      multiply(acc);
      __syncthreads();  // the panels are read before the next chunk overwrites them
      k = end;
    }
    if (part.contributions == 1) {
      store(acc, rows, cols,
            [c = args_.c.get() + row * s_.n + col, n = s_.n](std::int64_t y, std::int64_t x,
                                                             float value) {
              c[y * n + x] = from_float<C>(value);
            });
    } else {
      float* const partial = partial_tile(part.slot) + i * s_.tile_n + j;
      store(acc, rows, cols, [partial, n = s_.tile_n](std::int64_t y, std::int64_t x, float value) {
        partial[y * n + x] = value;
      });
    }
    return true;
  }

  __device__ std::int64_t b_stride() const { return args_.b_layout == BLayout::kKxN ? s_.n : s_.k; }

  /// Panel of `lines` rows along the tile by `depth` along K, K contiguous in memory; stored k
  /// first.
  __device__ void load_k_contiguous(const T* from, std::int64_t stride, std::int64_t lines,
                                    std::int64_t depth, float (&panel)[kDepth][kSub + kPad]) {
    const int line = static_cast<int>(threadIdx.x) / (kDepth / kLoadWidth);
    const int k = static_cast<int>(threadIdx.x) % (kDepth / kLoadWidth) * kLoadWidth;
    float values[kLoadWidth];
    load_row(from + line * stride + k, line < lines ? depth - k : 0, values);
#pragma unroll
    for (int e = 0; e < kLoadWidth; ++e) panel[k + e][line] = values[e];
  }

  __device__ void load_a(const T* from, std::int64_t rows, std::int64_t depth) {
    load_k_contiguous(from, s_.k, rows, depth, shared_.a);
  }

  __device__ void load_b(const T* b, std::int64_t col, std::int64_t cols, std::int64_t k,
                         std::int64_t depth) {
    if (args_.b_layout == BLayout::kNxK) {
      load_k_contiguous(b + col * s_.k + k, s_.k, cols, depth, shared_.b);
      return;
    }
    const int line = static_cast<int>(threadIdx.x) / (kSub / kLoadWidth);
    const int x = static_cast<int>(threadIdx.x) % (kSub / kLoadWidth) * kLoadWidth;
    float values[kLoadWidth];
    load_row(b + (k + line) * s_.n + col + x, line < depth ? cols - x : 0, values);
#pragma unroll
    for (int e = 0; e < kLoadWidth; ++e) shared_.b[line][x + e] = values[e];
  }

  /// Rows and columns of a sub-tile that this thread holds: 4 from each.
  __device__ static int thread_row() {
    return static_cast<int>(threadIdx.x) / (kSub / 4) * 4;
  }
  __device__ static int thread_col() {
    return static_cast<int>(threadIdx.x) % (kSub / 4) * 4;
  }

  /// Panels are zero beyond the chunk, and adding 0 * 0 changes no bit of a sum.
  __device__ void multiply(float (&acc)[4][4]) {
#pragma unroll 8
    for (int k = 0; k < kDepth; ++k) {
      const float4 a = *reinterpret_cast<const float4*>(&shared_.a[k][thread_row()]);
      const float4 b = *reinterpret_cast<const float4*>(&shared_.b[k][thread_col()]);
      const float av[4] = {a.x, a.y, a.z, a.w};
      const float bv[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int y = 0; y < 4; ++y) {
#pragma unroll
        for (int x = 0; x < 4; ++x) acc[y][x] = fmaf(av[y], bv[x], acc[y][x]);
      }
    }
  }

  template <class Put>
  __device__ void store(const float (&acc)[4][4], std::int64_t rows, std::int64_t cols, Put put) {
#pragma unroll
    for (int y = 0; y < 4; ++y) {
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        const int row = thread_row() + y;
        const int col = thread_col() + x;
        if (row < rows && col < cols) put(row, col, acc[y][x]);
      }
    }
  }

  __device__ float* partial_tile(std::int64_t slot) const {
    return args_.partials + slot * s_.partial_elements();
  }

  /// Adds the partial tiles in ascending k, whoever arrived last.
  __device__ void sum_partials(std::int64_t t, const Box& tile) {
    const std::int64_t first = s_.first_contributor(t);
    const std::int64_t end = first + s_.contributions(t);
    C* const c = args_.c.get() + tile.begin[0] * s_.n + tile.begin[1];
    for (std::int64_t e = threadIdx.x; e < tile.volume(); e += kGemmThreads) {
      const std::int64_t y = e / tile.size[1];
      const std::int64_t x = e % tile.size[1];
      const std::int64_t at = y * s_.tile_n + x;
      float sum = partial_tile(s_.partial_slot(first, t))[at];
      for (std::int64_t w = first + 1; w < end; ++w) {
        sum += partial_tile(s_.partial_slot(w, t))[at];
      }
      c[y * s_.n + x] = from_float<C>(sum);
    }
  }

  const GemmArgs<T, T, C>& args_;
  const GemmSchedule& s_;
  Sync& sync_;
  Shared& shared_;
};

template <class T, class C>
__global__ void __launch_bounds__(kGemmThreads)
    gemm_cuda(const __grid_constant__ GemmArgs<T, T, C> args,
              const __grid_constant__ SyncContext<GemmOperands::kCount> context) {
  using Block = GemmBlockCuda<T, C>;
  __shared__ typename Block::Shared shared;
  typename Block::Sync sync(context);
  if (!sync.begin_cta()) return;
  Block block(args, sync, shared);
  for (std::int64_t at = blockIdx.x; at < args.schedule.num_works; at += gridDim.x) {
    const std::int64_t work = sync.remap(at);
    block.prefetch(work);
    if (!block.run(work)) return;
  }
}

}  // namespace tileweave

// The consumer warps of a skinny GEMM block: x into shared memory, products, sums, results. What
// brings the weights (a ring of bulk copies, or cp.async) is the kernels' own.
#pragma once

#include <cstdint>

#include "tileweave/kernels/gemm/ptx_copy.cuh"
#include "tileweave/kernels/gemm/ptx_mma.cuh"
#include "tileweave/kernels/gemm/skinny_gemm_args.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

using SkinnyGroup = BarrierGroup<1, kSkinnyConsumers>;
using SkinnySync = SyncCta<AtomicsCudaOf<SkinnyGroup>, SkinnyGemmOperands::kSlots>;

__device__ __forceinline__ unsigned char* skinny_shared() {
  extern __shared__ __align__(128) unsigned char skinny_memory[];
  return skinny_memory;
}

__device__ __forceinline__ float load_number(const void* from, DType type, int i) {
  return type == DType::kF32 ? static_cast<const float*>(from)[i]
                             : to_float(static_cast<const BFloat16*>(from)[i]);
}

/// Two bf16, the first in the low half.
__device__ __forceinline__ std::uint32_t pack_bf16(float first, float second) {
  std::uint32_t both = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
}

/// kColumnTiles: operands of eight rows of x. kNorm: x is f32 and normed here.
template <int kColumnTiles, bool kNorm>
class SkinnyConsumer {
 public:
  using Operands = SkinnyGemmOperands;
  static constexpr int kColumns = kColumnTiles * kSkinnyColumns;
  static constexpr int kBuffers = kColumnTiles <= 2 ? 2 : 1;
  static constexpr int kResults = (16 * kColumns + kSkinnyConsumers - 1) / kSkinnyConsumers;

  __device__ SkinnyConsumer(const SkinnyGemmArgs& args, SkinnySync& sync, int work)
      : args_(args),
        s_(args.schedule),
        sync_(sync),
        work_(work),
        k_begin_(s_.first_k(work)),
        k_end_(s_.end_k(work)) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::uint32_t x = ptx::shared_address(skinny_shared() + args.shared.x);
    const std::uint32_t zeros = ptx::shared_address(skinny_shared() + args.shared.zeros);
#pragma unroll
    for (int t = 0; t < kColumnTiles; ++t) {
      const int row = t * kSkinnyColumns + lane % 8;
      x_row_[t] = row < s_.m ? x + row * args.shared.x_stride + lane / 8 * 16 : zeros;
      x_step_[t] = row < s_.m ? 1 : 0;
    }
  }

  /// Before any wait: zeros, norm weights.
  __device__ void prologue() {
    if (threadIdx.x < 5) {  // the word after the zeros says that a warp gave up
      reinterpret_cast<std::uint32_t*>(skinny_shared() + args_.shared.zeros)[threadIdx.x] = 0;
    }
    if constexpr (kNorm) {
      unsigned char* to = skinny_shared() + args_.shared.norm;
      const int bytes = s_.k * static_cast<int>(size_of(args_.norm_type));
      const auto* from = static_cast<const unsigned char*>(args_.norm_weight.get());
      if ((bytes | static_cast<int>(reinterpret_cast<std::uintptr_t>(from))) % 16 == 0) {
        for (int at = static_cast<int>(threadIdx.x) * 16; at < bytes; at += kSkinnyConsumers * 16) {
          ptx::copy_async_16(ptx::shared_address(to + at), from + at);
        }
        ptx::copy_async_commit();
      } else {
        for (int at = static_cast<int>(threadIdx.x); at < bytes; at += kSkinnyConsumers) {
          to[at] = from[at];
        }
      }
    }
  }

  /// Waits for the first slice of x and the residual, and brings the slice.
  __device__ bool start() {
    if (!load_slice(k_begin_)) return false;
    return args_.residual.ptr == nullptr ||
           static_cast<bool>(residual_ready_ =
                                 sync_.wait_input(Operands::kSlotResidual, {0, group()}));
  }

  /// Waits for and brings the slice of x that begins at `k_at`, if one does.
  __device__ bool enter_chunk(int k_at) {
    if (s_.wait_k == 0 || k_at == k_begin_ || k_at % s_.wait_k != 0) return true;
    return load_slice(k_at);
  }

  /// Adds a chunk's products: `fragments` of 16 columns from `k_at` on, in shared memory at `w`.
  __device__ void multiply(std::uint32_t w, int k_at, int fragments) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int offset = (k_at - k_begin_) * 2;
#pragma unroll
    for (int pair = 0; pair < kWarpFragments; pair += 2) {
      const int at = warp * kWarpFragments + pair;
      if (at < fragments) {
        const bool both = at + 1 < fragments;
        std::uint32_t a[2][4];
        load_fragment(a[0], w + at * kFragmentBytes + lane * 16);
        if (both) load_fragment(a[1], w + (at + 1) * kFragmentBytes + lane * 16);
#pragma unroll
        for (int t = 0; t < kColumnTiles; ++t) {
          std::uint32_t b[4];
          ptx::load_matrix_x4(b, x_row_[t] + x_step_[t] * (offset + at * 32));
          ptx::mma_m16n8k16_bf16(acc_[0][t], a[0], b[0], b[1]);
          if (both) ptx::mma_m16n8k16_bf16(acc_[1][t], a[1], b[2], b[3]);
        }
      }
    }
  }

  /// Ends a part of K of `strip`: sums over the warps join the strip's.
  __device__ void end_part(int strip, int part, bool first) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    constexpr int kWarpSums = 16 * kColumns;
    float* partial = reinterpret_cast<float*>(skinny_shared() + args_.shared.partial) +
                     buffer_ * kSkinnyWarps * kWarpSums;
    float* own = partial + warp * kWarpSums + lane / 4 * kColumns + lane % 4 * 2;
    if constexpr (kBuffers == 1) SkinnyGroup::barrier();  // the part before has been read
#pragma unroll
    for (int t = 0; t < kColumnTiles; ++t) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        *reinterpret_cast<float2*>(own + half * 8 * kColumns + t * kSkinnyColumns) =
            make_float2(acc_[0][t][half * 2] + acc_[1][t][half * 2],
                        acc_[0][t][half * 2 + 1] + acc_[1][t][half * 2 + 1]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) acc_[0][t][i] = acc_[1][t][i] = 0.0F;
    }
    // Two buffers: whoever writes this one again has passed the next part's barrier, and so have
    // its readers.
    SkinnyGroup::barrier();
    buffer_ = kBuffers - 1 - buffer_;
#pragma unroll
    for (int i = 0; i < kResults; ++i) {
      const int e = static_cast<int>(threadIdx.x) + i * kSkinnyConsumers;
      if (e < kWarpSums && e % kColumns < s_.m) {
        float sum = partial[e];
#pragma unroll
        for (int w = 1; w < kSkinnyWarps; ++w) sum += partial[w * kWarpSums + e];
        if (s_.split_k > 1) {
          partial_of(strip, part)[e / kColumns * s_.m + e % kColumns] = sum;
        } else {
          total_[i] = first ? sum : total_[i] + sum;
        }
      }
    }
  }

  /// Ends a strip whose sums this work has alone.
  __device__ void end_strip(int strip) {
    if (s_.split_k > 1) return;
#pragma unroll
    for (int i = 0; i < kResults; ++i) {
      const int e = static_cast<int>(threadIdx.x) + i * kSkinnyConsumers;
      if (e < 16 * kColumns && e % kColumns < s_.m) {
        put(strip, e / kColumns, e % kColumns, total_[i], gate_[i]);
      }
    }
  }

  /// A warp whose wait failed takes part in the barriers to come, which count every warp, and has
  /// the block end without a signal.
  __device__ void give_up() {
    *dead() = 1;
  }

  /// Last arriver's sums where several works share the strips; then the signal.
  __device__ void finish() {
    // Whoever gave up said so before the last part's barrier.
    if (*dead() != 0) return;
    if (s_.split_k > 1) {
      if (!sync_.arrive_last(group(), static_cast<std::uint32_t>(s_.split_k))) return;
      // Sums by the same thread for both strips of a pair, as in end_strip.
      for (int strip = s_.first_strip(work_); strip < s_.end_strip(work_); ++strip) {
#pragma unroll
        for (int i = 0; i < kResults; ++i) {
          const int e = static_cast<int>(threadIdx.x) + i * kSkinnyConsumers;
          if (e >= 16 * s_.m) continue;
          float sum = partial_of(strip, 0)[e];
          for (int p = 1; p < s_.parts(); ++p) sum += partial_of(strip, p)[e];
          put(strip, e / s_.m, e % s_.m, sum, gate_[i]);
        }
      }
    }
    sync_.signal_output(Operands::kSlotY, {0, group()});
  }

  __device__ int k_begin() const {
    return k_begin_;
  }
  __device__ int k_end() const {
    return k_end_;
  }

 private:
  __device__ int group() const {
    return s_.group_of(work_);
  }
  __device__ volatile int* dead() const {
    return reinterpret_cast<int*>(skinny_shared() + args_.shared.zeros + 16);
  }

  __device__ static void load_fragment(std::uint32_t (&a)[4], std::uint32_t address) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(address)
                 : "memory");
  }

  __device__ float* partial_of(int strip, int part) const {
    return args_.partials + (static_cast<std::int64_t>(strip) * s_.parts() + part) * (16 * s_.m);
  }

  __device__ bool load_slice(int k_at) {
    const int slice = s_.wait_k == 0 ? 0 : k_at / s_.wait_k;
    const Ready ready = sync_.wait_input(Operands::kSlotX, {0, slice});
    if (!ready) return false;
    int end = k_end_;
    if (s_.wait_k != 0 && (slice + 1) * s_.wait_k < end) end = (slice + 1) * s_.wait_k;
    if constexpr (kNorm) {
      norm(static_cast<const float*>(args_.x.get(ready)));
    } else {
      copy(static_cast<const BFloat16*>(args_.x.get(ready)), k_at, end);
    }
    SkinnyGroup::barrier();
    return true;
  }

  /// Columns [from, to) of x as they are.
  __device__ void copy(const BFloat16* x, int from, int to) {
    unsigned char* shared = skinny_shared() + args_.shared.x;
    if (s_.k % 8 == 0) {
      const int vectors = (to - from) / 8;
      for (int at = static_cast<int>(threadIdx.x); at < vectors * s_.m; at += kSkinnyConsumers) {
        const int row = at / vectors;
        const int column = from + at % vectors * 8;
        ptx::copy_async_16(
            ptx::shared_address(shared + row * args_.shared.x_stride + (column - k_begin_) * 2),
            x + static_cast<std::int64_t>(row) * s_.k + column);
      }
      ptx::copy_async_commit();
      ptx::copy_async_wait<0>();
    } else {
      const int columns = to - from;
      for (int at = static_cast<int>(threadIdx.x); at < columns * s_.m; at += kSkinnyConsumers) {
        const int row = at / columns;
        const int column = from + at % columns;
        reinterpret_cast<BFloat16*>(shared + row * args_.shared.x_stride)[column - k_begin_] =
            x[static_cast<std::int64_t>(row) * s_.k + column];
      }
    }
    if (to == k_end_) pad_columns();
  }

  /// Zeros up to a whole fragment: weights are zeros there, but 0 · NaN is not.
  __device__ void pad_columns() {
    const int extra = (k_end_ + 15) / 16 * 16 - k_end_;
    for (int at = static_cast<int>(threadIdx.x); at < extra * s_.m; at += kSkinnyConsumers) {
      reinterpret_cast<BFloat16*>(
          skinny_shared() + args_.shared.x +
          at / extra * args_.shared.x_stride)[k_end_ - k_begin_ + at % extra] = BFloat16{};
    }
  }

  /// Thread t of a row adds the squares of columns 4 t + 1024 i; lanes meet in a butterfly, warps
  /// in ascending order: bits of a row depend on the row alone. Four rows at a time, so that their
  /// loads are in flight together.
  __device__ void norm(const float* x) {
    ptx::copy_async_wait<0>();  // norm weights, from the prologue; the barriers below spread them
    for (int row = 0; row < s_.m; row += kNormRows) squares_of(x, row);
    SkinnyGroup::barrier();
    for (int row = 0; row < s_.m; row += kNormRows) normed(x, row);
    pad_columns();
  }

  static constexpr int kNormRows = kColumnTiles == 1 ? 2 : 4;

  __device__ float* squares() const {
    return reinterpret_cast<float*>(skinny_shared() + args_.shared.squares);
  }
  __device__ const float* row_of_x(const float* x, int row) const {
    return x + static_cast<std::int64_t>(min(row, s_.m - 1)) * s_.k;
  }

  __device__ void squares_of(const float* x, int row) {
    const int thread = static_cast<int>(threadIdx.x);
    float sum[kNormRows] = {};
    if (s_.k % 4 == 0) {
#pragma unroll 2
      for (int k = thread * 4; k < s_.k; k += kSkinnyConsumers * 4) {
#pragma unroll
        for (int r = 0; r < kNormRows; ++r) {
          const float4 v = *reinterpret_cast<const float4*>(row_of_x(x, row + r) + k);
          sum[r] += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
        }
      }
    } else {
      for (int k = thread; k < s_.k; k += kSkinnyConsumers) {
#pragma unroll
        for (int r = 0; r < kNormRows; ++r) {
          const float v = row_of_x(x, row + r)[k];
          sum[r] += v * v;
        }
      }
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
#pragma unroll
      for (int r = 0; r < kNormRows; ++r) {
        sum[r] += __shfl_xor_sync(0xffffffffU, sum[r], distance);
      }
    }
    if (thread % 32 != 0) return;
#pragma unroll
    for (int r = 0; r < kNormRows; ++r) {
      if (row + r < s_.m) squares()[thread / 32 * kSkinnyMostRows + row + r] = sum[r];
    }
  }

  __device__ float scale_of(int row) const {
    float sum = squares()[row];
#pragma unroll
    for (int w = 1; w < kSkinnyWarps; ++w) sum += squares()[w * kSkinnyMostRows + row];
    return 1.0F / sqrtf(sum / static_cast<float>(s_.k) + args_.eps);
  }

  __device__ void normed(const float* x, int row) {
    const int thread = static_cast<int>(threadIdx.x);
    unsigned char* shared = skinny_shared() + args_.shared.x;
    const unsigned char* weight = skinny_shared() + args_.shared.norm;
    float scale[kNormRows];
#pragma unroll
    for (int r = 0; r < kNormRows; ++r) scale[r] = scale_of(min(row + r, s_.m - 1));
    if (s_.k % 4 == 0) {
#pragma unroll 2
      for (int k = k_begin_ + thread * 4; k < k_end_; k += kSkinnyConsumers * 4) {
        const float4 w = make_float4(load_number(weight, args_.norm_type, k),
                                     load_number(weight, args_.norm_type, k + 1),
                                     load_number(weight, args_.norm_type, k + 2),
                                     load_number(weight, args_.norm_type, k + 3));
#pragma unroll
        for (int r = 0; r < kNormRows; ++r) {
          const float4 v = *reinterpret_cast<const float4*>(row_of_x(x, row + r) + k);
          if (row + r >= s_.m) continue;
          *reinterpret_cast<uint2*>(shared + (row + r) * args_.shared.x_stride +
                                    (k - k_begin_) * 2) =
              make_uint2(pack_bf16(v.x * scale[r] * w.x, v.y * scale[r] * w.y),
                         pack_bf16(v.z * scale[r] * w.z, v.w * scale[r] * w.w));
        }
      }
    } else {
      for (int k = k_begin_ + thread; k < k_end_; k += kSkinnyConsumers) {
        const float w = load_number(weight, args_.norm_type, k);
#pragma unroll
        for (int r = 0; r < kNormRows; ++r) {
          if (row + r >= s_.m) continue;
          reinterpret_cast<BFloat16*>(shared + (row + r) * args_.shared.x_stride)[k - k_begin_] =
              to_bfloat16(row_of_x(x, row + r)[k] * scale[r] * w);
        }
      }
    }
  }

  /// One sum of the product: row `r` of a strip, row `token` of x.
  __device__ void put(int strip, int r, int token, float sum, float& gate) {
    const int row = s_.row_of(strip, r);
    if (row >= s_.n) return;
    if (args_.bias.get() != nullptr) sum += load_number(args_.bias.get(), args_.bias_type, row);
    int column = row;
    if (s_.gated) {
      if (strip % 2 == 0) {
        gate = sum;
        return;
      }
      column = row - s_.n / 2;
      sum = gate / (1.0F + expf(-gate)) * sum;
    }
    const std::int64_t at = static_cast<std::int64_t>(token) * s_.columns() + column;
    if (args_.residual.ptr != nullptr) sum += args_.residual.get(residual_ready_)[at];
    if (args_.y_type == DType::kF32) {
      static_cast<float*>(args_.y.get())[at] = sum;
    } else {
      static_cast<BFloat16*>(args_.y.get())[at] = to_bfloat16(sum);
    }
  }

  const SkinnyGemmArgs& args_;
  const SkinnyGemmSchedule& s_;
  SkinnySync& sync_;
  int work_;
  int k_begin_, k_end_;
  int buffer_ = 0;
  std::uint32_t x_row_[kColumnTiles];
  int x_step_[kColumnTiles];
  float acc_[2][kColumnTiles][4] = {};
  float total_[kResults] = {};
  float gate_[kResults] = {};
  Ready residual_ready_{false};
};

}  // namespace tileweave

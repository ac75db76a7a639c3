// The consumer warps of a skinny GEMM block: x into shared memory, products, sums, results. What
// brings the weights (a ring of bulk copies, or cp.async) is the kernels' own.
#pragma once

#include <cstdint>

#include "tileweave/kernels/gemm/ptx_copy.cuh"
#include "tileweave/kernels/gemm/ptx_mma.cuh"
#include "tileweave/kernels/gemm/skinny_gemm_args.h"
#include "tileweave/kernels/gemm/stored_numbers.cuh"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

using SkinnyGroup = BarrierGroup<1, kSkinnyConsumers>;
using SkinnySync = SyncCta<AtomicsCudaOf<SkinnyGroup>, SkinnyGemmOperands::kSlots>;

__device__ __forceinline__ unsigned char* skinny_shared() {
  extern __shared__ __align__(128) unsigned char skinny_memory[];
  return skinny_memory;
}

/// What one block computes: strips [first_strip, end_strip), columns [k_begin, k_end) of K.
struct SkinnyWork {
  int group = 0;
  int first_strip = 0, end_strip = 0;
  int k_begin = 0, k_end = 0;
  int first_span = 0;

  __device__ __forceinline__ SkinnyWork(const SkinnyGemmSchedule& s, int work) {
    if (s.split_k == 1) {  // no divisions before the loads begin
      group = work;
      k_end = s.k;
    } else {
      group = s.group_of(work);
      first_span = s.first_part(work) / s.span_parts;
      k_begin = s.first_k(work);
      k_end = s.end_k(work);
    }
    first_strip = group * s.strips_per_work;
    end_strip = min(first_strip + s.strips_per_work, s.num_strips);
  }
};

/// Brings x into shared memory, as bf16, rows x_stride bytes apart. `kAsync`: by cp.async; not
/// where the weights come by cp.async too, since the groups of a thread land in order: x would wait
/// for the whole ring.
template <int kColumnTiles, bool kNorm, bool kAsync = true>
class SkinnyInput {
 public:
  __device__ __forceinline__ SkinnyInput(const SkinnyGemmArgs& args, const SkinnyWork& work)
      : args_(args), s_(args.schedule), k_begin_(work.k_begin), k_end_(work.k_end) {}

  /// Before any wait: zeros, norm weights.
  __device__ __forceinline__ void prologue() {
    if (threadIdx.x < 5) {  // the word after the zeros says that a warp gave up
      reinterpret_cast<std::uint32_t*>(skinny_shared() + args_.shared.zeros)[threadIdx.x] = 0;
    }
    if constexpr (kNorm) {
      unsigned char* to = skinny_shared() + args_.shared.norm;
      const int bytes = s_.k * static_cast<int>(size_of(args_.norm_type));
      const auto* from = static_cast<const unsigned char*>(args_.norm_weight.get());
      if ((bytes | static_cast<int>(reinterpret_cast<std::uintptr_t>(from))) % 16 == 0) {
        TW_ROLLED_LOOP
        for (int at = static_cast<int>(threadIdx.x) * 16; at < bytes; at += kSkinnyConsumers * 16) {
          copy_16(ptx::shared_address(to + at), from + at);
        }
        if constexpr (kAsync) ptx::copy_async_commit();
      } else {
        TW_ROLLED_LOOP
        for (int at = static_cast<int>(threadIdx.x); at < bytes; at += kSkinnyConsumers) {
          to[at] = from[at];
        }
      }
    }
  }

  /// Columns from `k_at` on, to the end of their slice; then a block barrier.
  __device__ __forceinline__ void bring(const void* x, int k_at) {
    const int end = s_.wait_k == 0 ? k_end_ : min(k_end_, (k_at / s_.wait_k + 1) * s_.wait_k);
    if constexpr (kNorm) {
      norm(static_cast<const float*>(x));
    } else {
      copy(static_cast<const BFloat16*>(x), k_at, end);
    }
    SkinnyGroup::barrier();
  }

 private:
  __device__ __forceinline__ static void copy_16(std::uint32_t to, const void* from) {
    if constexpr (kAsync) {
      ptx::copy_async_16(to, from);
    } else {
      ptx::store_shared_16(to, *static_cast<const uint4*>(from));
    }
  }

  /// Columns [from, to) of x as they are.
  __device__ __forceinline__ void copy(const BFloat16* x, int from, int to) {
    unsigned char* shared = skinny_shared() + args_.shared.x;
    if (s_.k % 8 == 0) {
      // Few rows: all threads on one row after the other; many: a warp a row.
      const bool rows_by_warp = s_.m >= kSkinnyWarps;
      const int thread = static_cast<int>(threadIdx.x);
      const int first = from + (rows_by_warp ? thread % 32 : thread) * 8;
      const int step = (rows_by_warp ? 32 : kSkinnyConsumers) * 8;
      for (int row = rows_by_warp ? thread / 32 : 0; row < s_.m;
           row += rows_by_warp ? kSkinnyWarps : 1) {
        const BFloat16* source = x + static_cast<std::int64_t>(row) * s_.k;
        const std::uint32_t target =
            ptx::shared_address(shared + row * args_.shared.x_stride) - k_begin_ * 2;
        TW_ROLLED_LOOP
        for (int column = first; column < to; column += step) {
          copy_16(target + column * 2, source + column);
        }
      }
      if constexpr (kAsync) {
        ptx::copy_async_commit();
        ptx::copy_async_wait<0>();
      }
    } else {
      const int columns = to - from;
      TW_ROLLED_LOOP
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
  __device__ __forceinline__ void pad_columns() {
    const int extra = (k_end_ + 15) / 16 * 16 - k_end_;
    if (extra == 0) return;
    TW_ROLLED_LOOP
    for (int at = static_cast<int>(threadIdx.x); at < extra * s_.m; at += kSkinnyConsumers) {
      reinterpret_cast<BFloat16*>(
          skinny_shared() + args_.shared.x +
          at / extra * args_.shared.x_stride)[k_end_ - k_begin_ + at % extra] = BFloat16{};
    }
  }

  /// RMSNorm of all rows. Thread t adds the squares of columns 4 t + 1024 i of a row; lanes meet in
  /// a butterfly, warps in ascending order: bits of a row depend on the row alone. Some rows at a
  /// time, whose loads are in flight together. Read twice, the second time from the L1 cache: code
  /// that holds a row in registers is longer, and a launch fetches its code anew.
  __device__ __forceinline__ void norm(const float* x) {
    if constexpr (kAsync) ptx::copy_async_wait<0>();  // norm weights, from the prologue
    s_.m == 1 ? norm_rows<1>(x) : norm_rows<4>(x);
    pad_columns();
  }

  template <int kRows>
  __device__ __forceinline__ void norm_rows(const float* x) {
    TW_ROLLED_LOOP
    for (int row = 0; row < s_.m; row += kRows) squares_of<kRows>(x, row);
    SkinnyGroup::barrier();
    TW_ROLLED_LOOP
    for (int row = 0; row < s_.m; row += kRows) normed<kRows>(x, row);
  }

  __device__ __forceinline__ float* squares() const {
    return reinterpret_cast<float*>(skinny_shared() + args_.shared.squares);
  }
  __device__ __forceinline__ const float* row_of_x(const float* x, int row) const {
    return x + static_cast<std::int64_t>(min(row, s_.m - 1)) * s_.k;
  }
  /// Four columns at a time, or one where rows are not aligned.
  __device__ __forceinline__ bool has_vectors() const { return s_.k % 4 == 0; }

  template <int kRows>
  __device__ __forceinline__ void squares_of(const float* x, int row) {
    const int thread = static_cast<int>(threadIdx.x);
    float sum[kRows] = {};
    if (has_vectors()) {
#pragma unroll 2
      for (int k = thread * 4; k < s_.k; k += kSkinnyConsumers * 4) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float4 v = *reinterpret_cast<const float4*>(row_of_x(x, row + r) + k);
          sum[r] += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
        }
      }
    } else {
      TW_ROLLED_LOOP
      for (int k = thread; k < s_.k; k += kSkinnyConsumers) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float v = row_of_x(x, row + r)[k];
          sum[r] += v * v;
        }
      }
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) sum[r] += __shfl_xor_sync(0xffffffffU, sum[r], distance);
    }
    if (thread % 32 != 0) return;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (row + r < s_.m) squares()[thread / 32 * kSkinnyMostRows + row + r] = sum[r];
    }
  }

  __device__ __forceinline__ float scale_of(int row) const {
    float sum = squares()[row];
#pragma unroll
    for (int w = 1; w < kSkinnyWarps; ++w) sum += squares()[w * kSkinnyMostRows + row];
    return rsqrtf(sum / static_cast<float>(s_.k) + args_.eps);
  }

  template <int kRows>
  __device__ __forceinline__ void normed(const float* x, int row) {
    const int thread = static_cast<int>(threadIdx.x);
    unsigned char* shared = skinny_shared() + args_.shared.x;
    const unsigned char* weight = skinny_shared() + args_.shared.norm;
    float scale[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) scale[r] = scale_of(min(row + r, s_.m - 1));
    if (has_vectors()) {
#pragma unroll 2
      for (int k = k_begin_ + thread * 4; k < k_end_; k += kSkinnyConsumers * 4) {
        const float4 w = norm_weights(weight, k);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float4 v = *reinterpret_cast<const float4*>(row_of_x(x, row + r) + k);
          if (row + r >= s_.m) continue;
          *reinterpret_cast<uint2*>(shared + (row + r) * args_.shared.x_stride +
                                    (k - k_begin_) * 2) =
              make_uint2(pack_bf16(v.x * scale[r] * w.x, v.y * scale[r] * w.y),
                         pack_bf16(v.z * scale[r] * w.z, v.w * scale[r] * w.w));
        }
      }
    } else {
      TW_ROLLED_LOOP
      for (int k = k_begin_ + thread; k < k_end_; k += kSkinnyConsumers) {
        const float w = load_number(weight, args_.norm_type, k);
        for (int r = 0; r < kRows && row + r < s_.m; ++r) {
          reinterpret_cast<BFloat16*>(shared + (row + r) * args_.shared.x_stride)[k - k_begin_] =
              to_bfloat16(row_of_x(x, row + r)[k] * scale[r] * w);
        }
      }
    }
  }

  /// Four of them from `k` on, a multiple of 4.
  __device__ __forceinline__ float4 norm_weights(const unsigned char* weight, int k) const {
    if (args_.norm_type == DType::kF32) return *reinterpret_cast<const float4*>(weight + k * 4);
    const auto both = *reinterpret_cast<const uint2*>(weight + k * 2);
    return make_float4(__uint_as_float(both.x << 16), __uint_as_float(both.x & 0xffff0000U),
                       __uint_as_float(both.y << 16), __uint_as_float(both.y & 0xffff0000U));
  }

  const SkinnyGemmArgs& args_;
  const SkinnyGemmSchedule& s_;
  int k_begin_, k_end_;
};

/// The sums that one thread ends up with: element threadIdx.x + 256 i of a strip's (16, columns).
template <int kColumnTiles>
class SkinnyResults {
 public:
  static constexpr int kCount =
      (16 * kColumnTiles * kSkinnyColumns + kSkinnyConsumers - 1) / kSkinnyConsumers;

  __device__ __forceinline__ explicit SkinnyResults(const SkinnyGemmArgs& args)
      : args_(args), s_(args.schedule) {
    const int columns = kColumnTiles == 1 ? s_.m : kColumnTiles * kSkinnyColumns;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int e = static_cast<int>(threadIdx.x) + i * kSkinnyConsumers;
      row_[i] = e / columns;
      token_[i] = e % columns;
      element_[i] = e < 16 * columns && token_[i] < s_.m ? e : -1;
    }
  }

  /// Element of (16, columns) of result `i`; negative: none.
  __device__ __forceinline__ int element(int i) const {
    return element_[i];
  }
  /// The same of (16, m).
  __device__ __forceinline__ int element_of_m(int i) const {
    return row_[i] * s_.m + token_[i];
  }

  /// Reads bias and residual of a strip early, so that they are there when the sums are.
  __device__ __forceinline__ void begin_strip(int strip, const float* residual) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      at_[i] = -1;
      if (element_[i] >= 0) place(i, strip, row_[i], token_[i], residual);
    }
  }

  __device__ __forceinline__ void place(int i, int strip, int r, int token, const float* residual) {
    at_[i] = -1;
    bias_[i] = 0.0F;
    residual_[i] = 0.0F;
    const int row = s_.row_of(strip, r);
    if (row >= s_.n) return;
    const bool gate = s_.gated && strip % 2 == 0;
    const int column = s_.gated && !gate ? row - s_.n / 2 : row;
    at_[i] = token * s_.columns() + column;
    if (args_.bias.get() != nullptr) {
      bias_[i] = load_number(args_.bias.get(), args_.bias_type, row);
    }
    if (residual != nullptr && !gate) residual_[i] = residual[at_[i]];
  }

  __device__ __forceinline__ void put(int i, int strip, float sum) {
    if (at_[i] < 0) return;
    sum += bias_[i];
    if (s_.gated) {
      if (strip % 2 == 0) {
        gate_[i] = sum;
        return;
      }
      sum = gate_[i] / (1.0F + expf(-gate_[i])) * sum;
    }
    sum += residual_[i];
    if (args_.y_type == DType::kF32) {
      static_cast<float*>(args_.y.get())[at_[i]] = sum;
    } else {
      static_cast<BFloat16*>(args_.y.get())[at_[i]] = to_bfloat16(sum);
    }
  }

 private:
  const SkinnyGemmArgs& args_;
  const SkinnyGemmSchedule& s_;
  int row_[kCount], token_[kCount], element_[kCount];
  int at_[kCount];
  float bias_[kCount], residual_[kCount];
  float gate_[kCount] = {};
};

/// Products and sums of one warp.
template <int kColumnTiles>
class SkinnySums {
 public:
  __device__ __forceinline__ explicit SkinnySums(const SkinnyGemmArgs& args)
      : columns_(kColumnTiles == 1 ? args.schedule.m : kColumnTiles * kSkinnyColumns) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::uint32_t x = ptx::shared_address(skinny_shared() + args.shared.x);
    const std::uint32_t zeros = ptx::shared_address(skinny_shared() + args.shared.zeros);
#pragma unroll
    for (int t = 0; t < kColumnTiles; ++t) {
      const int row = t * kSkinnyColumns + lane % 8;
      const bool exists = row < args.schedule.m;
      x_row_[t] = exists ? x + row * args.shared.x_stride + lane / 8 * 16 : zeros;
      x_mask_[t] = exists ? ~0U : 0U;
    }
  }

  /// A whole part: this warp's fragments at `w`, its columns of x `offset` bytes into a row.
  __device__ __forceinline__ void multiply(std::uint32_t w, std::uint32_t offset) {
    std::uint32_t a[kWarpFragments][4];
#pragma unroll
    for (int f = 0; f < kWarpFragments; ++f) load_fragment(a[f], w + f * kFragmentBytes);
#pragma unroll
    for (int t = 0; t < kColumnTiles; ++t) {
      std::uint32_t b[kWarpFragments / 2][4];
#pragma unroll
      for (int p = 0; p < kWarpFragments / 2; ++p) {
        ptx::load_matrix_x4(b[p], x_row_[t] + ((offset + p * 64) & x_mask_[t]));
      }
#pragma unroll
      for (int p = 0; p < kWarpFragments / 2; ++p) {
        ptx::mma_m16n8k16_bf16(acc_[0][t], a[2 * p], b[p][0], b[p][1]);
        ptx::mma_m16n8k16_bf16(acc_[1][t], a[2 * p + 1], b[p][2], b[p][3]);
      }
    }
  }

  /// The same for the first `count` fragments.
  __device__ __forceinline__ void multiply_some(std::uint32_t w, std::uint32_t offset, int count) {
    TW_ROLLED_LOOP
    for (int f = 0; f < count; f += 2) {
      std::uint32_t a[2][4] = {};
      load_fragment(a[0], w + f * kFragmentBytes);
      const bool both = f + 1 < count;
      if (both) load_fragment(a[1], w + (f + 1) * kFragmentBytes);
#pragma unroll
      for (int t = 0; t < kColumnTiles; ++t) {
        std::uint32_t b[4];
        ptx::load_matrix_x4(b, x_row_[t] + ((offset + f * 32) & x_mask_[t]));
        ptx::mma_m16n8k16_bf16(acc_[0][t], a[0], b[0], b[1]);
        if (both) ptx::mma_m16n8k16_bf16(acc_[1][t], a[1], b[2], b[3]);
      }
    }
  }

  /// Ends a part: the warp's sums go to `to`, (16, columns), and start anew.
  __device__ __forceinline__ void end_part(float* to) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float* own = to + lane / 4 * columns_ + lane % 4 * 2;
#pragma unroll
    for (int t = 0; t < kColumnTiles; ++t) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float first = acc_[0][t][half * 2] + acc_[1][t][half * 2];
        const float second = acc_[0][t][half * 2 + 1] + acc_[1][t][half * 2 + 1];
        float* at = own + half * 8 * columns_ + t * kSkinnyColumns;
        if constexpr (kColumnTiles == 1) {  // m columns, without padding
          if (lane % 4 * 2 < columns_) at[0] = first;
          if (lane % 4 * 2 + 1 < columns_) at[1] = second;
        } else {
          *reinterpret_cast<float2*>(at) = make_float2(first, second);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) acc_[0][t][i] = acc_[1][t][i] = 0.0F;
    }
  }

 private:
  __device__ __forceinline__ static void load_fragment(std::uint32_t (&a)[4],
                                                       std::uint32_t address) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(address));
  }

  int columns_;
  std::uint32_t x_row_[kColumnTiles];
  std::uint32_t x_mask_[kColumnTiles];
  float acc_[2][kColumnTiles][4] = {};
};

/// Where the sum of span `span` of a strip lies, (16, m), for whoever adds the spans up.
__device__ __forceinline__ float* skinny_partial(const SkinnyGemmArgs& args, int strip, int span) {
  const SkinnyGemmSchedule& s = args.schedule;
  return args.partials + (static_cast<std::int64_t>(strip) * s.spans() + span) * (16 * s.m);
}

/// Sums of all spans of four elements of a strip from `e` on, in ascending order; the loads are in
/// flight together.
__device__ __forceinline__ float4 sum_of_spans(const SkinnyGemmArgs& args, int strip, int e) {
  const int spans = args.schedule.spans();
  const int step = 16 * args.schedule.m;
  const float* from = skinny_partial(args, strip, 0) + e;
  float4 sum = *reinterpret_cast<const float4*>(from);
  constexpr int kAtOnce = 4;
  TW_ROLLED_LOOP
  for (int p = 1; p < spans; p += kAtOnce) {
    float4 v[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (p + i < spans) v[i] = *reinterpret_cast<const float4*>(from + (p + i) * step);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (p + i >= spans) continue;
      sum.x += v[i].x;
      sum.y += v[i].y;
      sum.z += v[i].z;
      sum.w += v[i].w;
    }
  }
  return sum;
}

/// The last arriver's part of a product whose K several works share: four elements of the group's
/// strips, or of its pairs of strips, at a time per thread.
template <int kColumnTiles>
__device__ __forceinline__ void add_spans(const SkinnyGemmArgs& args, const SkinnyWork& work,
                                          SkinnyResults<kColumnTiles>& results,
                                          const float* residual) {
  const SkinnyGemmSchedule& s = args.schedule;
  const int unit = s.gated ? 2 : 1;
  const int size = 16 * s.m;
  const int count = (work.end_strip - work.first_strip) / unit * size;
  TW_ROLLED_LOOP
  for (int i = static_cast<int>(threadIdx.x) * 4; i < count; i += kSkinnyConsumers * 4) {
    const int strip = work.first_strip + i / size * unit;
    const int e = i % size;
    float4 sums[2];
    sums[0] = sum_of_spans(args, strip, e);
    if (s.gated) sums[1] = sum_of_spans(args, strip + 1, e);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      for (int half = 0; half < unit; ++half) {
        const float4& from = sums[half];
        results.place(0, strip + half, (e + j) / s.m, (e + j) % s.m, residual);
        results.put(0, strip + half, j == 0 ? from.x : j == 1 ? from.y : j == 2 ? from.z : from.w);
      }
    }
  }
}

}  // namespace tileweave

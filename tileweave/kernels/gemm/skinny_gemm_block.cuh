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

/// Rows of x that one set of products has columns for, in operands of the tensor cores.
constexpr int skinny_column_tiles(int tokens) {
  return tokens <= kSkinnyColumns ? 1 : tokens / kSkinnyColumns;
}
/// Columns of a warp's sums in shared memory: without padding where one operand holds all rows.
template <int kTokens>
__device__ __forceinline__ int skinny_columns(const SkinnyGemmArgs& args) {
  return kTokens == 1 ? 1 : kTokens <= kSkinnyColumns ? args.schedule.m : kTokens;
}
/// Sums of squares by warp: [kSkinnyWarps][kSkinnyMostRows].
__device__ __forceinline__ float* skinny_squares(const SkinnyGemmArgs& args) {
  return reinterpret_cast<float*>(skinny_shared() + args.shared.squares);
}

/// What one work is: strips [first_strip, end_strip), columns [k_begin, k_end) of K, which are all
/// of them unless kSplit. Whatever follows from the arguments is left to them: registers are few.
template <bool kSplit>
class SkinnyWork {
 public:
  __device__ __forceinline__ SkinnyWork(const SkinnyGemmSchedule& s, int work)
      : s_(s), group_(kSplit ? s.group_of(work) : work) {
    if constexpr (kSplit) {
      first_span_ = s.first_part(work) / s.span_parts;
      k_begin_ = s.first_k(work);
      k_end_ = s.end_k(work);
    }
  }
  SkinnyWork(const SkinnyWork&) = default;

  __device__ __forceinline__ int group() const { return group_; }
  __device__ __forceinline__ int first_strip() const { return group_ * s_.strips_per_work; }
  __device__ __forceinline__ int end_strip() const {
    return min(first_strip() + s_.strips_per_work, s_.num_strips);
  }
  __device__ __forceinline__ int k_begin() const { return kSplit ? k_begin_ : 0; }
  __device__ __forceinline__ int k_end() const { return kSplit ? k_end_ : s_.k; }
  __device__ __forceinline__ int first_span() const { return kSplit ? first_span_ : 0; }

 private:
  const SkinnyGemmSchedule& s_;
  int group_;
  int k_begin_ = 0, k_end_ = 0, first_span_ = 0;
};

/// Brings x into shared memory, as bf16, rows x_stride bytes apart. `kAsync`: by cp.async; not
/// where the weights come by cp.async too, since the groups of a thread land in order: x would wait
/// for the whole ring.
///
/// A norm in front costs one pass: columns times norm weights go to shared memory while the squares
/// are summed up, and the factor 1 / rms of a row, known last, multiplies the results
/// (SkinnyResults). Short code, loads in flight together: what runs behind the wait is fetched anew
/// by every launch.
template <int kTokens, bool kNorm, bool kSplit, bool kAsync = true>
class SkinnyInput {
 public:
  __device__ __forceinline__ SkinnyInput(const SkinnyGemmArgs& args, const SkinnyWork<kSplit>& work)
      : args_(args), s_(args.schedule), work_(work) {}

  /// Before any wait: zeros, norm weights.
  __device__ __forceinline__ void prologue() {
    if (threadIdx.x < 5) {  // the word after the zeros says that a warp gave up
      reinterpret_cast<std::uint32_t*>(skinny_shared() + args_.shared.zeros)[threadIdx.x] = 0;
    }
    if constexpr (kNorm) bring_norm_weights();
  }

  /// Columns from `k_at` on, to the end of their slice; then a block barrier.
  __device__ __forceinline__ void bring(const void* x, int k_at) {
    const int end =
        s_.wait_k == 0 ? work_.k_end() : min(work_.k_end(), (k_at / s_.wait_k + 1) * s_.wait_k);
    if constexpr (kNorm) {
      norm(static_cast<const float*>(x));
    } else {
      copy(static_cast<const BFloat16*>(x), k_at, end);
    }
    if (s_.k % 16 != 0 && end == work_.k_end()) pad_columns();
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
      // One row: all threads; more: a warp a row.
      const int thread = static_cast<int>(threadIdx.x);
      const int first = from + (kTokens == 1 ? thread : thread % 32) * 8;
      const int step = (kTokens == 1 ? kSkinnyConsumers : 32) * 8;
      for (int row = kTokens == 1 ? 0 : thread / 32; row < s_.m; row += kSkinnyWarps) {
        const BFloat16* source = x + static_cast<std::int64_t>(row) * s_.k;
        const std::uint32_t target =
            ptx::shared_address(shared + row * args_.shared.x_stride) - work_.k_begin() * 2;
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
        reinterpret_cast<BFloat16*>(shared +
                                    row * args_.shared.x_stride)[column - work_.k_begin()] =
            x[static_cast<std::int64_t>(row) * s_.k + column];
      }
    }
  }

  /// Zeros up to a whole fragment: weights are zeros there, but 0 · NaN is not.
  __device__ __forceinline__ void pad_columns() {
    const int extra = (work_.k_end() + 15) / 16 * 16 - work_.k_end();
    TW_ROLLED_LOOP
    for (int at = static_cast<int>(threadIdx.x); at < extra * s_.m; at += kSkinnyConsumers) {
      reinterpret_cast<BFloat16*>(
          skinny_shared() + args_.shared.x +
          at / extra * args_.shared.x_stride)[work_.k_end() - work_.k_begin() + at % extra] =
          BFloat16{};
    }
  }

  // Thread t has columns 4 t + 1024 i of every row, or t + 256 i where rows are not aligned: norm
  // weights that it brings are its own, and the squares of a row are summed in an order that
  // depends on K alone: lanes meet in a butterfly, warps in ascending order (SkinnyResults).

  /// Four columns at a time, or one where rows are not aligned.
  __device__ __forceinline__ bool has_vectors() const { return s_.k % 4 == 0; }

  __device__ __forceinline__ void bring_norm_weights() {
    unsigned char* to = skinny_shared() + args_.shared.norm;
    const auto* from = static_cast<const unsigned char*>(args_.norm_weight.get());
    const int size = args_.norm_type == DType::kF32 ? 4 : 2;
    const bool aligned = reinterpret_cast<std::uintptr_t>(from) % 16 == 0;
    const int width = has_vectors() ? 4 : 1;
    TW_ROLLED_LOOP
    for (int k = static_cast<int>(threadIdx.x) * width; k < s_.k; k += kSkinnyConsumers * width) {
      const std::uint32_t target = ptx::shared_address(to + k * size);
      if (kAsync && width == 4 && aligned) {
        size == 4 ? ptx::copy_async_16(target, from + k * size)
                  : ptx::copy_async_8(target, from + k * size);
      } else {
        for (int byte = k * size; byte < (k + width) * size; ++byte) to[byte] = from[byte];
      }
    }
    if constexpr (kAsync) ptx::copy_async_commit();
  }

  __device__ __forceinline__ void norm(const float* x) {
    if constexpr (kAsync) ptx::copy_async_wait<0>();  // norm weights, from the prologue
    if (has_vectors()) {
      norm_vectors(x);
    } else {
      norm_numbers(x);
    }
  }

  /// Several loads in flight per thread: four pieces of one row, or of the same columns of four
  /// rows.
  __device__ __forceinline__ void norm_vectors(const float* x) {
    constexpr bool kOne = kTokens == 1;
    constexpr int kItems = 4;
    constexpr int kRows = kOne ? 1 : kItems;
    constexpr int kStep = kSkinnyConsumers * 4;
    unsigned char* const shared = skinny_shared() + args_.shared.x - work_.k_begin() * 2;
    const unsigned char* const weight = skinny_shared() + args_.shared.norm;
    TW_ROLLED_LOOP
    for (int row = 0; row < s_.m; row += kRows) {
      float sums[kRows] = {};
      TW_ROLLED_LOOP
      for (int k = static_cast<int>(threadIdx.x) * 4; k < s_.k;
           k += kOne ? kItems * kStep : kStep) {
        float4 v[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
          const bool exists = kOne ? k + i * kStep < s_.k : row + i < s_.m;
          v[i] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
          if (exists) {
            v[i] = *reinterpret_cast<const float4*>(
                x + static_cast<std::int64_t>(kOne ? 0 : row + i) * s_.k + k +
                (kOne ? i * kStep : 0));
          }
        }
        float4 w = {};
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
          const int column = kOne ? k + i * kStep : k;
          const bool exists = kOne ? column < s_.k : row + i < s_.m;
          if ((kOne || i == 0) && exists) w = norm_weights(weight, column);
          sums[kOne ? 0 : i] +=
              (v[i].x * v[i].x + v[i].y * v[i].y) + (v[i].z * v[i].z + v[i].w * v[i].w);
          if (!exists) continue;
          if (kSplit && (column < work_.k_begin() || column >= work_.k_end())) continue;
          *reinterpret_cast<uint2*>(shared + (kOne ? 0 : (row + i) * args_.shared.x_stride) +
                                    column * 2) = make_uint2(pack_bf16(v[i].x * w.x, v[i].y * w.y),
                                                             pack_bf16(v[i].z * w.z, v[i].w * w.w));
        }
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (kOne || row + i < s_.m) end_row(row + i, sums[i]);
      }
    }
  }

  __device__ __forceinline__ void norm_numbers(const float* x) {
    unsigned char* const shared = skinny_shared() + args_.shared.x;
    const unsigned char* const weight = skinny_shared() + args_.shared.norm;
    TW_ROLLED_LOOP
    for (int row = 0; row < s_.m; ++row) {
      float sum = 0.0F;
      TW_ROLLED_LOOP
      for (int k = static_cast<int>(threadIdx.x); k < s_.k; k += kSkinnyConsumers) {
        const float v = x[static_cast<std::int64_t>(row) * s_.k + k];
        sum += v * v;
        if (kSplit && (k < work_.k_begin() || k >= work_.k_end())) continue;
        reinterpret_cast<BFloat16*>(shared + row * args_.shared.x_stride)[k - work_.k_begin()] =
            to_bfloat16(v * load_number(weight, args_.norm_type, k));
      }
      end_row(row, sum);
    }
  }

  /// Leaves a warp's sum of the squares of a row where SkinnyResults looks for it.
  __device__ __forceinline__ void end_row(int row, float sum) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(0xffffffffU, sum, distance);
    }
    const int thread = static_cast<int>(threadIdx.x);
    if (thread % 32 == 0) skinny_squares(args_)[thread / 32 * kSkinnyMostRows + row] = sum;
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
  const SkinnyWork<kSplit>& work_;
};

/// The sums that one thread ends up with: element threadIdx.x + 256 i of a strip's (16, columns).
template <int kTokens, bool kNorm>
class SkinnyResults {
 public:
  static constexpr int kCount = (16 * kTokens + kSkinnyConsumers - 1) / kSkinnyConsumers;

  __device__ __forceinline__ explicit SkinnyResults(const SkinnyGemmArgs& args)
      : args_(args), s_(args.schedule) {
    const int columns = skinny_columns<kTokens>(args);
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

  /// When x has been brought: factors of the norm.
  __device__ __forceinline__ void begin_block() {
    if constexpr (kNorm) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (element_[i] >= 0) scale_[i] = scale_of(token_[i]);
      }
    }
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
    const bool gate = s_.gated && strip % 2 == 0;
    const int column = (s_.gated ? strip / 2 : strip) * static_cast<int>(kStripRows) + r;
    at_[i] = column < s_.columns() ? token * s_.columns() + column : -1;
    bias_[i] = 0.0F;
    residual_[i] = 0.0F;
    if (at_[i] < 0) return;
    if (args_.bias.get() != nullptr) {
      const int row = s_.gated && !gate ? s_.columns() + column : column;
      bias_[i] = load_number(args_.bias.get(), args_.bias_type, row);
    }
    if (residual != nullptr && !gate) residual_[i] = residual[at_[i]];
  }
  /// For a result that was placed without begin_block.
  __device__ __forceinline__ void read_scale(int i, int token) {
    if constexpr (kNorm) scale_[i] = scale_of(token);
  }

  __device__ __forceinline__ void put(int i, int strip, float sum) {
    if (at_[i] < 0) return;
    if constexpr (kNorm) sum *= scale_[i];
    sum += bias_[i];
    if (s_.gated) {
      if (strip % 2 == 0) {
        gate_[i] = sum;
        return;
      }
      sum = silu(gate_[i]) * sum;
    }
    sum += residual_[i];
    if (args_.y_type == DType::kF32) {
      static_cast<float*>(args_.y.get())[at_[i]] = sum;
    } else {
      static_cast<BFloat16*>(args_.y.get())[at_[i]] = to_bfloat16(sum);
    }
  }

 private:
  /// 1 / rms of a row.
  __device__ __forceinline__ float scale_of(int token) const {
    const float* from = skinny_squares(args_) + token;
    float sum = from[0];
#pragma unroll
    for (int w = 1; w < kSkinnyWarps; ++w) sum += from[w * kSkinnyMostRows];
    return rsqrtf(fmaf(sum, args_.one_over_k, args_.eps));
  }

  const SkinnyGemmArgs& args_;
  const SkinnyGemmSchedule& s_;
  int row_[kCount], token_[kCount], element_[kCount];
  int at_[kCount];
  float bias_[kCount], residual_[kCount];
  float scale_[kNorm ? kCount : 1];
  float gate_[kCount] = {};
};

/// Products and sums of one warp.
template <int kTokens>
class SkinnySums {
 public:
  static constexpr int kColumnTiles = skinny_column_tiles(kTokens);

  __device__ __forceinline__ explicit SkinnySums(const SkinnyGemmArgs& args)
      : columns_(skinny_columns<kTokens>(args)) {
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
        if constexpr (kTokens == 1) {
          if (lane % 4 == 0) at[0] = first;
        } else if constexpr (kColumnTiles == 1) {  // m columns, without padding
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
template <int kTokens, bool kNorm>
__device__ __forceinline__ void add_spans(const SkinnyGemmArgs& args, const SkinnyWork<true>& work,
                                          SkinnyResults<kTokens, kNorm>& results,
                                          const float* residual) {
  const SkinnyGemmSchedule& s = args.schedule;
  const int unit = s.gated ? 2 : 1;
  const int size = 16 * s.m;
  const int count = (work.end_strip() - work.first_strip()) / unit * size;
  TW_ROLLED_LOOP
  for (int i = static_cast<int>(threadIdx.x) * 4; i < count; i += kSkinnyConsumers * 4) {
    const int strip = work.first_strip() + i / size * unit;
    const int e = i % size;
    float4 sums[2];
    sums[0] = sum_of_spans(args, strip, e);
    if (s.gated) sums[1] = sum_of_spans(args, strip + 1, e);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      for (int half = 0; half < unit; ++half) {
        const float4& from = sums[half];
        results.place(0, strip + half, (e + j) / s.m, (e + j) % s.m, residual);
        results.read_scale(0, (e + j) % s.m);
        results.put(0, strip + half, j == 0 ? from.x : j == 1 ? from.y : j == 2 ? from.z : from.w);
      }
    }
  }
}

}  // namespace tileweave

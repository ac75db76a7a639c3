// The heart of the GPU's attention kernels: one query row's heads of one kv head over some passes.
//
// Eight warps. Per pass of 128 keys: warp w scores its slice of 16 keys (tensor cores, up to eight
// query heads), then all warps meet once and warp w adds the weighted values of columns 8 w .. (and
// 8 w + 64 ..) over all slices. Shared memory holds one pass or two: keys are a warp's own, so it
// fetches those of the next pass without a place as soon as it has scored; values are fetched when
// all warps are through with the last ones. All sums have a fixed order, so bits depend on keys,
// values and query alone. Rows of older keys may be fetched before the first wait (prefetch), this
// step's after it (complete), unless there is only the row's own, which lies in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tileweave/core/dtype.h"
#include "tileweave/kernels/attention/attention_segments.h"
#include "tileweave/kernels/attention/attention_shared.h"
#include "tileweave/kernels/attention/ptx_attention.cuh"

namespace tileweave {

inline constexpr unsigned kAllLanes = 0xffffffffU;

/// How far the softmax of one query head has come, of which this thread holds some columns. Scores
/// are in units of log 2.
template <int kTiles>
struct AttentionState {
  float highest = -INFINITY;
  float weight = 0.0F;
  float sums[kTiles][2] = {};
};

/// `into` takes later keys in. Merging with a state of no keys changes no bit.
template <int kTiles>
__device__ __forceinline__ void merge(AttentionState<kTiles>& into,
                                      const AttentionState<kTiles>& later) {
  const float highest = fmaxf(into.highest, later.highest);
  const float keep = ptx::exp2_approx(into.highest - highest);
  const float add = ptx::exp2_approx(later.highest - highest);
  into.highest = highest;
  into.weight = fmaf(into.weight, keep, __fmul_rn(later.weight, add));
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      into.sums[t][i] = fmaf(into.sums[t][i], keep, __fmul_rn(later.sums[t][i], add));
    }
  }
}

/// The keys of one row, all of one kv head. Keys from `past` on are this step's.
struct AttentionKeys {
  const std::int32_t* pages = nullptr;       // of the sequence
  const std::int32_t* step_slots = nullptr;  // pool rows of this step's keys, from key `past` on;
                                             // null: only one, with its value in shared memory
  std::int32_t page_size = 1;
  std::int32_t keys = 0;  // that the row sees
  std::int32_t past = 0;
};

/// Where keys and values of one kv head lie: row r at `stride` bytes times r.
struct AttentionPool {
  const char* k_past;
  const char* v_past;
  std::int32_t stride;
};

/// Passes [first, end). A rehearsal computes with whatever lies in shared memory and waits for
/// nothing, so that the code is near when the numbers are.
struct AttentionSpan {
  int first, end;
  bool rehearsal = false;
};

/// Stands for step rows where they lie in shared memory.
struct NoStepRows {};

template <int kDim>
class AttentionRow {
 public:
  static constexpr int kTiles = (kDim + 63) / 64;  // 8-column tiles of a warp
  static constexpr int kSteps = kDim / 16;
  static constexpr AttentionShared kShared{kDim};
  using State = AttentionState<kTiles>;

  /// `buffers`: passes that shared memory holds.
  __device__ AttentionRow(std::byte* shared, int buffers)
      : shared_(shared),
        address_(ptx::shared_address(shared)),
        buffers_(buffers),
        lane_(static_cast<int>(threadIdx.x) % 32),
        warp_(static_cast<int>(threadIdx.x) / 32) {}

  __device__ int lane() const { return lane_; }
  __device__ int warp() const { return warp_; }
  /// Query head that this thread's sums belong to, and their first column in tile t.
  __device__ int head() const { return lane_ / 4; }
  __device__ int column(int t) const { return (warp_ + 8 * t) * 8 + lane_ % 4 * 2; }
  __device__ bool has_tile(int t) const { return kDim % 64 == 0 || (warp_ + 8 * t) * 8 < kDim; }

  /// All threads must be through with the row before.
  __device__ void open(const AttentionPool& pool, const AttentionKeys& keys) {
    pool_ = pool;
    keys_ = keys;
    own_ = keys.step_slots == nullptr ? keys.past : -1;
  }

  /// Starts fetching the older rows of the first passes of [first, end), and brings those of the
  /// pass after them into L2. May come before the first wait.
  __device__ void prefetch(int first, int end) {
    std::int32_t rows[kAttentionMostBuffers];
#pragma unroll
    for (int i = 0; i < kAttentionMostBuffers; ++i) rows[i] = row_of(first + i);
    TW_ROLLED_LOOP
    for (int i = 0; i < 2 * buffers_; ++i) {
      const int pass = first + i / 2;
      row_ = i < 2 ? rows[0] : rows[1];
      if (pass < end) {
        copy<Rows::kOlder>(pass, i % 2 * kShared.region(), i % 2 == 0 ? pool_.k_past : pool_.v_past,
                           NoStepRows{});
      }
      ptx::commit_copies();
    }
    if (buffers_ == 1 && first + 1 < end) bring_near(first + 1, rows[1]);
  }

  /// Starts fetching what `prefetch` of the same pass left out: `step_key(to, row, unit)` and
  /// `step_value` bring 16 bytes of this step's pool row `row` to shared address `to`. One buffer.
  template <class StepKey, class StepValue>
  __device__ void complete(int pass, const StepKey& step_key, const StepValue& step_value) {
    if (has_step_rows(pass)) {
      row_ = row_of(pass);
      copy<Rows::kStep>(pass, 0, pool_.k_past, step_key);
      copy<Rows::kStep>(pass, kShared.region(), pool_.v_past, step_value);
    }
    ptx::commit_copies();
  }

  /// Runs the passes of `span`, the first of which have been prefetched and completed, and calls
  /// `segment_done(segment, state)` after each segment. `q`: the query heads as the tensor cores
  /// take them; `scale` includes log2(e). All threads of the block.
  template <class StepKey, class StepValue, class Done>
  __device__ void run(const AttentionSpan& span, const std::uint32_t (&q)[kSteps][2], float scale,
                      const StepKey& step_key, const StepValue& step_value,
                      const Done& segment_done) {
    constexpr bool kStepCopies = !std::is_same_v<StepKey, NoStepRows>;
    constexpr Rows kNext = kStepCopies ? Rows::kAll : Rows::kOlder;
    State segment;
    TW_ROLLED_LOOP
    for (int pass = span.first; pass < span.end; ++pass) {
      const int next = pass + buffers_;  // to take this one's place
      const bool more = next < span.end;
      if (more) row_ = row_of(next);
      // Groups of copies under way, the oldest first: keys and values of as many passes as there
      // are buffers, then (first pass) step rows.
      if (!span.rehearsal) {
        if (kStepCopies && pass == span.first) {
          has_step_rows(pass) ? ptx::wait_copies<0>() : ptx::wait_copies<2>();
        } else {
          wait_oldest();
        }
      }
      __syncwarp();
      score(pass, q, scale);
      if (!span.rehearsal) {
        __syncwarp();  // the slice's keys have been read by every lane
        if (more) copy<kNext>(next, 0, pool_.k_past, step_key);
        ptx::commit_copies();
        wait_oldest();  // this pass's values
      }
      __syncthreads();
      merge(segment, weigh(pass));
      if (pass + 1 < span.end) {
        __syncthreads();
        if (more) copy<kNext>(next, kShared.region(), pool_.v_past, step_value);
        ptx::commit_copies();
      }
      if (pass + 1 == span.end || AttentionSegments::start_from(pass + 1) == pass + 1) {
        segment_done(AttentionSegments::index(pass), segment);
        segment = State{};
      }
    }
  }

 private:
  enum class Rows { kOlder, kStep, kAll };

  __device__ bool has_step_rows(int pass) const {
    const int end = (pass + 1) * kAttentionPass;
    return (end < keys_.keys ? end : keys_.keys) > keys_.past;
  }

  /// Waits for the oldest group of copies: two per buffer are under way.
  __device__ void wait_oldest() const {
    buffers_ == 1 ? ptx::wait_copies<1>() : ptx::wait_copies<3>();
  }

  /// Of the keys of a pass, in bytes from the start of shared memory.
  __device__ int buffer_of(int pass) const {
    return kShared.keys() + (pass & (buffers_ - 1)) * 2 * kShared.region();
  }

  /// Pool row of this lane's key of the warp's slice; negative: none, or not in the pool yet.
  __device__ std::int32_t row_of(int pass) const {
    const int key = pass * kAttentionPass + warp_ * kAttentionSlice + lane_ % kAttentionSlice;
    if (key >= keys_.keys || key == own_) return -1;
    if (key >= keys_.past) return keys_.step_slots[key - keys_.past];
    const int page = key / keys_.page_size;
    return keys_.pages[page] * keys_.page_size + key - page * keys_.page_size;
  }

  /// Brings the older rows of a pass into L2.
  __device__ void bring_near(int pass, std::int32_t row) const {
    const int key = pass * kAttentionPass + warp_ * kAttentionSlice + lane_ % kAttentionSlice;
    if (row < 0 || key >= keys_.past) return;
    const char* const from =
        (lane_ < kAttentionSlice ? pool_.k_past : pool_.v_past) + std::int64_t{row} * pool_.stride;
#pragma unroll
    for (int byte = 0; byte < 2 * kDim; byte += 128) ptx::prefetch_to_l2(from + byte);
  }

  /// This warp's slice of keys (`region` 0) or values to shared memory; zeros for rows that are
  /// none.
  template <Rows kRows, class StepRow>
  __device__ void copy(int pass, int region, const char* past, const StepRow& step_row) const {
    constexpr int kUnits = kDim / 8;  // of 16 bytes per row
    const int first = pass * kAttentionPass + warp_ * kAttentionSlice;
    const std::uint32_t slice =
        address_ + buffer_of(pass) + region + warp_ * kAttentionSlice * kShared.pitch();
#pragma unroll 2  // short code: a launch fetches it anew
    for (int i = 0; i < kAttentionSlice * kUnits / 32; ++i) {
      const int at = i * 32 + lane_;
      const int in_slice = at / kUnits;
      const int unit = at % kUnits;
      const int row = __shfl_sync(kAllLanes, row_, in_slice);
      const std::uint32_t to = slice + in_slice * kShared.pitch() + unit * 16;
      if (row < 0 || first + in_slice < keys_.past) {
        if constexpr (kRows != Rows::kStep) {
          const int from = row < 0 ? 0 : row;
          ptx::copy_async_16_if(row >= 0, to, past + std::int64_t{from} * pool_.stride + unit * 16);
        }
      } else if constexpr (kRows != Rows::kOlder) {
        step_row(to, row, unit);
      }
    }
  }

  /// Scores of this warp's slice; leaves its weights, relative to its own highest score.
  __device__ void score(int pass, const std::uint32_t (&q)[kSteps][2], float scale) {
    const int first = pass * kAttentionPass + warp_ * kAttentionSlice;
    uint2 weights = {0, 0};
    float highest = -INFINITY;
    float sum = 0.0F;
    if (first < keys_.keys) {
      float acc[2][2][4] = {};  // two chains per 8 keys: half the latency
      const int matrix = lane_ / 8;
      const int in_slice = matrix / 2 * 8 + lane_ % 8;
      const std::uint32_t from =
          address_ + matrix % 2 * 16 +
          (first + in_slice == own_
               ? kShared.own_key()
               : buffer_of(pass) + (warp_ * kAttentionSlice + in_slice) * kShared.pitch());
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        std::uint32_t b[4];
        ptx::load_matrices(b, from + step * 32);
        ptx::mma_eight_rows(acc[0][step % 2], q[step][0], q[step][1], b[0], b[1]);
        ptx::mma_eight_rows(acc[1][step % 2], q[step][0], q[step][1], b[2], b[3]);
      }
      float x[2][2];
#pragma unroll
      for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const bool seen = first + n * 8 + lane_ % 4 * 2 + i < keys_.keys;
          x[n][i] = seen ? (acc[n][0][i] + acc[n][1][i]) * scale : -INFINITY;
          highest = fmaxf(highest, x[n][i]);
        }
      }
      highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, 1));
      highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, 2));
      weights.x =
          ptx::pack_bf16(ptx::exp2_approx(x[0][0] - highest), ptx::exp2_approx(x[0][1] - highest));
      weights.y =
          ptx::pack_bf16(ptx::exp2_approx(x[1][0] - highest), ptx::exp2_approx(x[1][1] - highest));
      // The sum is of the rounded weights, which multiply the values.
      sum = (ptx::low_bf16(weights.x) + ptx::high_bf16(weights.x)) +
            (ptx::low_bf16(weights.y) + ptx::high_bf16(weights.y));
      sum += __shfl_xor_sync(kAllLanes, sum, 1);
      sum += __shfl_xor_sync(kAllLanes, sum, 2);
    }
    shared<uint2>(kShared.weights())[warp_ * 32 + lane_] = weights;
    if (lane_ % 4 == 0) {
      shared<float2>(kShared.stats())[warp_ * kAttentionMaxHeads + head()] = {highest, sum};
    }
  }

  /// The pass as a state: every slice's weights times values of this warp's columns.
  __device__ State weigh(int of) const {
    State pass;
    const int values = buffer_of(of) + kShared.region();
    const int own = own_ - of * kAttentionPass;  // in the pass, if it is there
    float factor[kAttentionSlices];
    float sum[kAttentionSlices];
#pragma unroll
    for (int s = 0; s < kAttentionSlices; ++s) {
      const float2 stats = shared<float2>(kShared.stats())[s * kAttentionMaxHeads + head()];
      factor[s] = stats.x;
      sum[s] = stats.y;
      pass.highest = fmaxf(pass.highest, stats.x);
    }
#pragma unroll
    for (int s = 0; s < kAttentionSlices; ++s) {
      factor[s] = ptx::exp2_approx(factor[s] - pass.highest);
      pass.weight = fmaf(sum[s], factor[s], pass.weight);
    }
#pragma unroll
    for (int two = 0; two < kAttentionSlices / 2; ++two) {
      const uint2 low = shared<uint2>(kShared.weights())[2 * two * 32 + lane_];
      const uint2 high = shared<uint2>(kShared.weights())[(2 * two + 1) * 32 + lane_];
      const int in_pass = two * 32 + lane_;
      const std::uint32_t from =
          address_ + warp_ * 16 +
          (in_pass == own ? kShared.own_value() : values + in_pass * kShared.pitch());
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        if (!has_tile(t)) continue;
        std::uint32_t b[4];
        ptx::load_matrices_transposed(b, from + 8 * t * 16);
        float first[4] = {};
        float second[4] = {};
        ptx::mma_eight_rows(first, low.x, low.y, b[0], b[1]);
        ptx::mma_eight_rows(second, high.x, high.y, b[2], b[3]);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          pass.sums[t][i] = fmaf(first[i], factor[2 * two], pass.sums[t][i]);
          pass.sums[t][i] = fmaf(second[i], factor[2 * two + 1], pass.sums[t][i]);
        }
      }
    }
    return pass;
  }

  template <class T>
  __device__ T* shared(int offset) const {
    return reinterpret_cast<T*>(shared_ + offset);
  }

  std::byte* shared_;
  std::uint32_t address_;
  int buffers_, lane_, warp_;
  AttentionPool pool_{};
  AttentionKeys keys_{};
  int own_ = -1;           // key that lies in shared memory
  std::int32_t row_ = -1;  // this lane's, of the pass to be copied
};

}  // namespace tileweave

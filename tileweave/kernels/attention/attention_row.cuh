// The heart of the GPU's attention kernels: one query row's heads of one kv head over some passes.
//
// Eight warps. Of each pass of 128 keys warp w takes a slice of 16 for itself: it fetches their
// keys and values, scores them against up to eight query heads and adds its weighted values up
// (tensor cores, a query head per four lanes), from pass to pass, without meeting another warp. At
// the end of a segment all warps meet once and their sums become one. Shared memory holds one pass
// or two; a warp fetches the keys of the next pass without a place as soon as it has scored, values
// as soon as it has added them. All sums have a fixed order, so bits depend on keys, values and
// query alone. Rows of older keys may be fetched before the first wait (prefetch), this step's
// after it (complete), unless there is only the row's own, which lies in shared memory.
//
// Code that runs once the query is there is short and goes straight on: instructions come from
// memory at their first use in a launch, while weights stream.
#pragma once

#include <cstddef>
#include <cstdint>

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

/// The same of one warp's slices: this thread has columns 8 t + 2 (lane % 4) and the next of head
/// lane / 4; `weight` is of the keys that this lane scored.
template <int kDim>
struct AttentionSlices {
  float highest = -INFINITY;
  float weight = 0.0F;
  float sums[kDim / 8][2] = {};
};

/// The keys of one row, all of one kv head. Keys from `past` on are this step's.
struct AttentionKeys {
  const std::int32_t* pages = nullptr;       // of the sequence
  const std::int32_t* step_slots = nullptr;  // pool rows of this step's keys, from key `past` on
  std::int32_t page_size = 1;
  std::int32_t keys = 0;  // that the row sees
  std::int32_t past = 0;
};

/// Where this step's keys and values are: in the pool once the wait is over, or only the row's own,
/// the last one, in shared memory.
enum class StepRows { kInPool, kOwnInShared };

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

/// What brings a step row where there is none to bring.
struct NoStepRows {};

template <int kDim, StepRows kStepRows>
class AttentionRow {
 public:
  static constexpr int kTiles = (kDim + 63) / 64;  // 8-column tiles of a warp
  static constexpr int kSteps = kDim / 16;
  static constexpr AttentionShared kShared{kDim};
  using State = AttentionState<kTiles>;

  /// `heads`: query heads; `buffers`: passes that shared memory holds.
  __device__ AttentionRow(std::byte* shared, int heads, int buffers)
      : shared_(shared),
        address_(ptx::shared_address(shared)),
        heads_(heads),
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
  }

  /// Starts fetching the older rows of the first passes of [first, end), and brings those of the
  /// pass after them into L2. May come before the first wait.
  __device__ void prefetch(int first, int end) {
    std::int32_t rows[kAttentionMostBuffers];
#pragma unroll
    for (int i = 0; i < kAttentionMostBuffers; ++i) {
      rows[i] = first + i < end ? row_of(first + i) : -1;
    }
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

  /// Whether shared memory holds all of passes [first, end), which are then one segment.
  __device__ bool fits(int first, int end) const {
    return end - first <= buffers_;
  }

  /// The state of passes [first, end), at least one, that fit, have been prefetched and have no
  /// rows of this step but the row's own. A rehearsal waits for nothing. `query`, `scale`: as
  /// below. All threads of the block; two calls need a barrier between them.
  template <class Query>
  __device__ __forceinline__ State fitting(const AttentionSpan& span, const Query& query,
                                           float scale) const {
    static_assert(kStepRows == StepRows::kOwnInShared);
    AttentionSlices<kDim> own;
    if (!span.rehearsal) ptx::wait_copies<0>();
    __syncwarp();
    TW_ROLLED_LOOP
    for (int pass = span.first; pass < span.end; ++pass) {
      if (pass * kAttentionPass + warp_ * kAttentionSlice >= keys_.keys) break;
      std::uint32_t weights[2];
      const float keep = score(pass, query, scale, own, weights);
      add_values(pass, keep, weights, own);
    }
    return combined(own);
  }

  /// Runs the passes of `span`, the first of which have been prefetched and completed, and calls
  /// `segment_done(pass, state)` after the last pass of each segment.
  /// `query(step, two)` loads two steps of the query heads as the tensor cores take them; `scale`
  /// includes log2(e). All threads of the block; two calls need a barrier between them.
  template <class Query, class StepKey, class StepValue, class Done>
  __device__ void run(const AttentionSpan& span, const Query& query, float scale,
                      const StepKey& step_key, const StepValue& step_value,
                      const Done& segment_done) {
    constexpr bool kStepCopies = kStepRows == StepRows::kInPool;
    constexpr Rows kNext = kStepCopies ? Rows::kAll : Rows::kOlder;
    AttentionSlices<kDim> own;
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
      const bool seen = pass * kAttentionPass + warp_ * kAttentionSlice < keys_.keys;
      std::uint32_t weights[2];
      float keep = 1.0F;
      if (seen) keep = score(pass, query, scale, own, weights);
      if (!span.rehearsal) {
        __syncwarp();  // the slice's keys have been read by every lane
        if (more) copy<kNext>(next, 0, pool_.k_past, step_key);
        ptx::commit_copies();
        wait_oldest();  // this pass's values
      }
      __syncwarp();
      if (seen) add_values(pass, keep, weights, own);
      if (pass + 1 < span.end) {
        __syncwarp();
        if (more) copy<kNext>(next, kShared.region(), pool_.v_past, step_value);
        if (!span.rehearsal) ptx::commit_copies();
        if (AttentionSegments::start_from(pass + 1) != pass + 1) continue;
      }
      segment_done(pass, combined(own));
      if (pass + 1 == span.end) break;
      __syncthreads();  // the sums have been read
      own = {};
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

  __device__ bool is_own(int key) const {
    return kStepRows == StepRows::kOwnInShared && key == keys_.past;
  }

  /// Pool row of this lane's key of the warp's slice; negative: none, or not in the pool yet.
  __device__ std::int32_t row_of(int pass) const {
    const int key = pass * kAttentionPass + warp_ * kAttentionSlice + lane_ % kAttentionSlice;
    if constexpr (kStepRows == StepRows::kOwnInShared) {
      if (key >= keys_.past) return -1;
    } else {
      if (key >= keys_.keys) return -1;
      if (key >= keys_.past) return keys_.step_slots[key - keys_.past];
    }
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
      if (kStepRows == StepRows::kOwnInShared || row < 0 || first + in_slice < keys_.past) {
        if constexpr (kRows != Rows::kStep) {
          const int from = row < 0 ? 0 : row;
          ptx::copy_async_16_if(row >= 0, to, past + std::int64_t{from} * pool_.stride + unit * 16);
        }
      } else if constexpr (kRows != Rows::kOlder) {
        step_row(to, row, unit);
      }
    }
  }

  // Products and sums are spelled out as they are rounded: several loops have this code in line,
  // and must not differ in what the compiler contracts.

  /// Scores this warp's slice: `weights` relative to the highest score so far, as an operand of the
  /// tensor cores, heads as rows. A lane has head lane / 4 and keys lane % 4 * 2, the next, and
  /// eight further. Returns what the sums of values so far are to be multiplied with.
  template <class Query>
  __device__ __forceinline__ float score(int pass, const Query& query, float scale,
                                         AttentionSlices<kDim>& own,
                                         std::uint32_t (&weights)[2]) const {
    const int first = pass * kAttentionPass + warp_ * kAttentionSlice;
    const int in_slice = lane_ % 8 + lane_ / 16 * 8;
    const std::uint32_t from =
        address_ + lane_ / 8 % 2 * 16 +
        (is_own(first + in_slice)
             ? kShared.own_key()
             : buffer_of(pass) + (warp_ * kAttentionSlice + in_slice) * kShared.pitch());
    float acc[2][2][4] = {};  // eight keys, chain: two chains have half the latency
#pragma unroll
    for (int step = 0; step < kSteps; step += 2) {
      std::uint32_t q[4];
      query(step, q);
#pragma unroll
      for (int chain = 0; chain < 2 && step + chain < kSteps; ++chain) {
        std::uint32_t k[4];
        ptx::load_matrices(k, from + (step + chain) * 32);
        ptx::mma_eight_rows(acc[0][chain], q[2 * chain], q[2 * chain + 1], k[0], k[1]);
        ptx::mma_eight_rows(acc[1][chain], q[2 * chain], q[2 * chain + 1], k[2], k[3]);
      }
    }
    float x[2][2];
    float highest = own.highest;
#pragma unroll
    for (int eight = 0; eight < 2; ++eight) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const bool seen = first + eight * 8 + lane_ % 4 * 2 + i < keys_.keys;
        x[eight][i] =
            seen ? __fmul_rn(__fadd_rn(acc[eight][0][i], acc[eight][1][i]), scale) : -INFINITY;
        highest = fmaxf(highest, x[eight][i]);
      }
    }
    highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, 1));
    highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, 2));
    const float keep = ptx::exp2_approx(__fsub_rn(own.highest, highest));
    own.highest = highest;
    float sum = 0.0F;  // of the rounded weights, which multiply the values
#pragma unroll
    for (int eight = 0; eight < 2; ++eight) {
      weights[eight] = ptx::pack_bf16(ptx::exp2_approx(__fsub_rn(x[eight][0], highest)),
                                      ptx::exp2_approx(__fsub_rn(x[eight][1], highest)));
      sum = __fadd_rn(sum, ptx::low_bf16(weights[eight]));
      sum = __fadd_rn(sum, ptx::high_bf16(weights[eight]));
    }
    own.weight = fmaf(own.weight, keep, sum);
    return keep;
  }

  /// Adds the slice's weighted values to `keep` times what there is.
  __device__ __forceinline__ void add_values(int pass, float keep,
                                             const std::uint32_t (&weights)[2],
                                             AttentionSlices<kDim>& own) const {
    const int in_slice = lane_ % kAttentionSlice;
    const std::uint32_t from = address_ + lane_ / kAttentionSlice * 16 +
                               (is_own(pass * kAttentionPass + warp_ * kAttentionSlice + in_slice)
                                    ? kShared.own_value()
                                    : buffer_of(pass) + kShared.region() +
                                          (warp_ * kAttentionSlice + in_slice) * kShared.pitch());
#pragma unroll
    for (int two = 0; two < kDim / 16; ++two) {
      std::uint32_t v[4];
      ptx::load_matrices_transposed(v, from + two * 32);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float part[4] = {};
        ptx::mma_eight_rows(part, weights[0], weights[1], v[2 * i], v[2 * i + 1]);
        float(&sums)[2] = own.sums[2 * two + i];
        sums[0] = fmaf(sums[0], keep, part[0]);
        sums[1] = fmaf(sums[1], keep, part[1]);
      }
    }
  }

  /// Every warp's sums of a segment as one state, of columns as column() says; warps add in
  /// ascending order.
  __device__ __forceinline__ State combined(AttentionSlices<kDim>& own) const {
    constexpr int kPitch = AttentionShared::sums_pitch(kDim);  // floats
    auto* const sums =
        shared<float>(AttentionShared{kDim}.sums(buffers_)) + head() * kPitch + lane_ % 4 * 2;
    auto* const stats = shared<float2>(kShared.stats()) + head();
    own.weight += __shfl_xor_sync(kAllLanes, own.weight, 1);
    own.weight += __shfl_xor_sync(kAllLanes, own.weight, 2);
    const bool holds = head() < heads_;
    if (holds) {
#pragma unroll
      for (int t = 0; t < kDim / 8; ++t) {
        *reinterpret_cast<float2*>(sums + warp_ * heads_ * kPitch + t * 8) = {own.sums[t][0],
                                                                              own.sums[t][1]};
      }
      if (lane_ % 4 == 0) stats[warp_ * kAttentionMaxHeads] = {own.highest, own.weight};
    }
    __syncthreads();
    State state;
    if (!holds) return state;
    float factor[kAttentionSlices];
    float weight[kAttentionSlices];
#pragma unroll
    for (int s = 0; s < kAttentionSlices; ++s) {
      const float2 of = stats[s * kAttentionMaxHeads];
      factor[s] = of.x;
      weight[s] = of.y;
      state.highest = fmaxf(state.highest, of.x);
    }
#pragma unroll
    for (int s = 0; s < kAttentionSlices; ++s) {
      factor[s] = ptx::exp2_approx(factor[s] - state.highest);
      state.weight = fmaf(weight[s], factor[s], state.weight);
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      if (!has_tile(t)) continue;
#pragma unroll
      for (int s = 0; s < kAttentionSlices; ++s) {
        const float2 of =
            *reinterpret_cast<const float2*>(sums + s * heads_ * kPitch + (warp_ + 8 * t) * 8);
        state.sums[t][0] = fmaf(of.x, factor[s], state.sums[t][0]);
        state.sums[t][1] = fmaf(of.y, factor[s], state.sums[t][1]);
      }
    }
    return state;
  }

  template <class T>
  __device__ T* shared(int offset) const {
    return reinterpret_cast<T*>(shared_ + offset);
  }

  std::byte* shared_;
  std::uint32_t address_;
  int heads_, buffers_, lane_, warp_;
  AttentionPool pool_{};
  AttentionKeys keys_{};
  std::int32_t row_ = -1;  // this lane's, of the pass to be copied
};

}  // namespace tileweave

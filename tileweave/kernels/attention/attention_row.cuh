// The heart of the GPU's attention kernels: one query row's heads of one kv head over some passes.
//
// Eight warps. Per pass of 128 keys: warp w scores its slice of 16 keys (tensor cores, up to eight
// query heads), then all warps meet once and warp w adds the weighted values of columns 8 w .. (and
// 8 w + 64 ..) over all slices. Keys are a warp's own, so it fetches the next pass's as soon as it
// has scored; values are fetched when all warps are through with the last ones. All sums have a
// fixed order, so bits depend on keys, values and query alone. Rows of older keys may be fetched
// before the first wait (prefetch), this step's after it (complete).
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

/// The keys of one row, all of one kv head. Keys from `past` on are this step's.
struct AttentionKeys {
  const std::int32_t* pages = nullptr;       // of the sequence
  const std::int32_t* step_slots = nullptr;  // pool rows of this step's keys, from key `past` on
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

template <int kDim>
class AttentionRow {
 public:
  static constexpr int kTiles = (kDim + 63) / 64;  // 8-column tiles of a warp
  static constexpr int kSteps = kDim / 16;
  static constexpr AttentionShared kShared{kDim};
  using State = AttentionState<kTiles>;

  __device__ explicit AttentionRow(std::byte* shared)
      : shared_(shared),
        address_(ptx::shared_address(shared)),
        lane_(static_cast<int>(threadIdx.x) % 32),
        warp_(static_cast<int>(threadIdx.x) / 32) {}

  __device__ int lane() const { return lane_; }
  __device__ int warp() const { return warp_; }
  /// Query head that this thread's sums belong to, and their first column in tile t.
  __device__ int head() const { return lane_ / 4; }
  __device__ int column(int t) const { return (warp_ + 8 * t) * 8 + lane_ % 4 * 2; }
  __device__ bool has_tile(int t) const { return kDim % 64 == 0 || (warp_ + 8 * t) * 8 < kDim; }

  __device__ void open(const AttentionPool& pool, const AttentionKeys& keys) {
    pool_ = pool;
    keys_ = keys;
  }

  /// Starts fetching the older rows of a pass. May come before the first wait.
  __device__ void prefetch(int pass) {
    const auto no_row = [](std::uint32_t, int, int) {};
    find_rows(pass);
    copy<Rows::kOlder>(pass, kShared.keys(), pool_.k_past, no_row);
    ptx::commit_copies();
    copy<Rows::kOlder>(pass, kShared.values(), pool_.v_past, no_row);
    ptx::commit_copies();
  }

  /// Brings the older rows of a pass into L2: of the second one, which shared memory has no room
  /// for.
  __device__ void bring_near(int pass) const {
    const int key = key_of(pass);
    if (key >= keys_.past || key >= keys_.keys) return;
    const char* const rows = lane_ < kAttentionSlice ? pool_.k_past : pool_.v_past;
    const char* const row = rows + std::int64_t{older_row(key)} * pool_.stride;
#pragma unroll
    for (int byte = 0; byte < 2 * kDim; byte += 128) ptx::prefetch_to_l2(row + byte);
  }

  /// Starts fetching what `prefetch` of the same pass left out: `step_key(to, row, unit)` and
  /// `step_value` bring 16 bytes of this step's pool row `row` to shared address `to`.
  template <class StepKey, class StepValue>
  __device__ void complete(int pass, const StepKey& step_key, const StepValue& step_value) {
    if (has_step_rows(pass)) {
      copy<Rows::kStep>(pass, kShared.keys(), pool_.k_past, step_key);
      copy<Rows::kStep>(pass, kShared.values(), pool_.v_past, step_value);
    }
    ptx::commit_copies();
  }

  /// Runs passes [first, end), the first of which has been prefetched and completed, and calls
  /// `segment_done(segment, state)` after each segment. `q`: the query heads as the tensor cores
  /// take them; `scale` includes log2(e). All threads of the block.
  template <class StepKey, class StepValue, class Done>
  __device__ void run(int first, int end, const std::uint32_t (&q)[kSteps][2], float scale,
                      const StepKey& step_key, const StepValue& step_value,
                      const Done& segment_done) {
    State segment;
    for (int pass = first; pass < end; ++pass) {
      const bool more = pass + 1 < end;
      if (more) find_rows(pass + 1);
      // Groups of copies under way, the oldest first: keys, values, then (first pass) step rows.
      if (pass > first) {
        ptx::wait_copies<1>();
      } else if (has_step_rows(pass)) {
        ptx::wait_copies<0>();
      } else {
        ptx::wait_copies<2>();
      }
      __syncwarp();
      score(pass, q, scale);
      __syncwarp();  // the slice's keys have been read by every lane
      if (more) copy<Rows::kAll>(pass + 1, kShared.keys(), pool_.k_past, step_key);
      ptx::commit_copies();
      ptx::wait_copies<1>();  // all but the next keys
      __syncthreads();
      merge(segment, weigh());
      __syncthreads();
      if (more) copy<Rows::kAll>(pass + 1, kShared.values(), pool_.v_past, step_value);
      ptx::commit_copies();
      if (!more || AttentionSegments::start_from(pass + 1) == pass + 1) {
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

  /// This lane's key of the warp's slice.
  __device__ int key_of(int pass) const {
    return pass * kAttentionPass + warp_ * kAttentionSlice + lane_ % kAttentionSlice;
  }
  __device__ std::int32_t older_row(int key) const {
    const int page = key / keys_.page_size;
    return keys_.pages[page] * keys_.page_size + key - page * keys_.page_size;
  }

  /// Pool rows of this warp's slice, one per lane.
  __device__ void find_rows(int pass) {
    const int key = key_of(pass);
    if (key >= keys_.keys) {
      row_ = 0;
    } else if (key < keys_.past) {
      row_ = older_row(key);
    } else {
      row_ = keys_.step_slots[key - keys_.past];
    }
  }

  /// This warp's slice of keys or values to shared memory; zeros for keys that the row does not
  /// see.
  template <Rows kRows, class StepRow>
  __device__ void copy(int pass, int region, const char* past, const StepRow& step_row) const {
    constexpr int kUnits = kDim / 8;  // of 16 bytes per row
    const int first = pass * kAttentionPass + warp_ * kAttentionSlice;
#pragma unroll 2  // short code: a launch fetches it anew
    for (int i = 0; i < kAttentionSlice * kUnits / 32; ++i) {
      const int at = i * 32 + lane_;
      const int in_slice = at / kUnits;
      const int unit = at % kUnits;
      const int row = __shfl_sync(kAllLanes, row_, in_slice);
      const int key = first + in_slice;
      const std::uint32_t to =
          address_ + region + (warp_ * kAttentionSlice + in_slice) * kShared.pitch() + unit * 16;
      if (key >= keys_.keys) {
        if (kRows != Rows::kStep) ptx::zero_async_16(to, past);
      } else if (key < keys_.past) {
        if (kRows != Rows::kStep)
          ptx::copy_async_16(to, past + std::int64_t{row} * pool_.stride + unit * 16);
      } else if (kRows != Rows::kOlder) {
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
      const std::uint32_t from =
          address_ + kShared.keys() +
          (warp_ * kAttentionSlice + matrix / 2 * 8 + lane_ % 8) * kShared.pitch() +
          matrix % 2 * 16;
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
  __device__ State weigh() const {
    State pass;
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
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        if (!has_tile(t)) continue;
        std::uint32_t b[4];
        ptx::load_matrices_transposed(b, address_ + kShared.values() +
                                             (two * 32 + lane_) * kShared.pitch() +
                                             (warp_ + 8 * t) * 16);
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
  int lane_, warp_;
  AttentionPool pool_{};
  AttentionKeys keys_{};
  std::int32_t row_ = 0;
};

}  // namespace tileweave

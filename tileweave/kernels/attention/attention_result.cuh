// What becomes of a row's state on a GPU: stored as a result, kept as a partial result in scratch,
// merged from there by the last of the works that share a row.
//
// Partial results are merged in ascending order of their segments, the first of which split 0 has
// already merged into one: the same operations in the same order as in a work that is alone.
#pragma once

#include <cstdint>

#include "tileweave/kernels/attention/attention_row.cuh"
#include "tileweave/sync/atomics_cuda.cuh"

namespace tileweave {

/// Partial results of one row and kv head in scratch.
template <int kDim, class Row>
class AttentionPartials {
 public:
  using State = typename Row::State;

  __device__ AttentionPartials(float* first, int heads) : first_(first), heads_(heads) {}

  __device__ void store(const Row& row, int segment, const State& state) const {
    if (row.head() >= heads_) return;
    float* const to = at(segment);
#pragma unroll
    for (int t = 0; t < Row::kTiles; ++t) {
      if (!row.has_tile(t)) continue;
      *reinterpret_cast<float2*>(to + row.head() * kDim + row.column(t)) = {state.sums[t][0],
                                                                            state.sums[t][1]};
    }
    if (row.warp() == 0 && row.lane() % 4 == 0) {
      *reinterpret_cast<float2*>(to + heads_ * kDim + row.head() * 2) = {state.highest,
                                                                         state.weight};
    }
  }

  /// Segment 0, then segments [first, end) in ascending order. `end` 0, a rehearsal: nothing is
  /// read.
  __device__ State merged(const Row& row, int first, int end) const {
    constexpr int kAtOnce = 4;  // loads under way
    if (row.head() >= heads_) return {};
    State state;
    if (end > 0) load(row, 0, state);
    for (int segment = first; segment < end; segment += kAtOnce) {
      State part[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (segment + i < end) load(row, segment + i, part[i]);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (segment + i < end) merge(state, part[i]);
      }
    }
    return state;
  }

 private:
  __device__ float* at(int segment) const {
    return first_ + segment * attention_partial_floats(heads_, kDim);
  }

  __device__ void load(const Row& row, int segment, State& state) const {
    const float* const from = at(segment);
    const float2 stats = *reinterpret_cast<const float2*>(from + heads_ * kDim + row.head() * 2);
    state.highest = stats.x;
    state.weight = stats.y;
#pragma unroll
    for (int t = 0; t < Row::kTiles; ++t) {
      if (!row.has_tile(t)) continue;
      const float2 sums =
          *reinterpret_cast<const float2*>(from + row.head() * kDim + row.column(t));
      state.sums[t][0] = sums.x;
      state.sums[t][1] = sums.y;
    }
  }

  float* first_;
  int heads_;
};

/// Weighted mean of the values, to the row's heads of one kv head at `to`.
template <int kDim, class Row>
__device__ void store_result(const Row& row, int heads, const typename Row::State& state,
                             BFloat16* to) {
  const bool holds = row.head() < heads;  // asked late: a rehearsal, of 0 heads, comes by here
  const float scale = __fdividef(1.0F, state.weight);
#pragma unroll
  for (int t = 0; t < Row::kTiles; ++t) {
    if (!row.has_tile(t)) continue;
    const std::uint32_t pair = ptx::pack_bf16(state.sums[t][0] * scale, state.sums[t][1] * scale);
    if (holds) *reinterpret_cast<std::uint32_t*>(to + row.head() * kDim + row.column(t)) = pair;
  }
}

/// Zeros: the result of a row without a sequence.
template <int kDim>
__device__ void store_zeros(int heads, BFloat16* to) {
  TW_ROLLED_LOOP
  for (int i = static_cast<int>(threadIdx.x); i < heads * kDim / 2; i += kAttentionThreads) {
    reinterpret_cast<std::uint32_t*>(to)[i] = 0;
  }
}

/// The counter by which works that share a result find out who is last. Every run it grows by
/// `splits`, however many of them have keys to attend to: split 0 arrives for the idle ones too.
template <class Sync>
class SplitArrivals {
 public:
  __device__ SplitArrivals(Sync& sync, int splits)
      : sync_(sync), splits_(static_cast<std::uint32_t>(splits)) {}

  /// After the wait, long before it is needed: fetches where this run's count starts.
  __device__ void fetch_base(std::int64_t result) {
    if (splits_ <= 1 || threadIdx.x != 0) return;
    const CounterSync& counter = sync_.context().header.counter;
    base_ = counter.base[result * counter.base_stride];
  }

  /// The only work with keys counts for all; nobody looks.
  __device__ void arrive_alone(std::int64_t result) {
    if (splits_ > 1 && threadIdx.x == 0) sync_.atomics().add_relaxed(word(result), splits_);
  }

  /// Call when the partial results are stored, with `arrivals` more than 0. True for the last to
  /// arrive, which may read them. With 0, a rehearsal: true, and nothing is counted.
  __device__ bool arrive(std::int64_t result, int arrivals) {
    sync_.atomics().barrier();  // every thread's part is ordered before the arrival
    bool last = arrivals == 0;
    if (threadIdx.x == 0 && arrivals > 0) {
      const auto n = static_cast<std::uint32_t>(arrivals);
      last = sync_.atomics().fetch_add_acq_rel(word(result), n) + n - base_ == splits_;
    }
    return sync_.atomics().barrier_or(last);
  }

 private:
  __device__ std::uint32_t* word(std::int64_t result) const {
    return sync_.context().header.counter.words + result;
  }

  Sync& sync_;
  std::uint32_t splits_;
  std::uint32_t base_ = 0;
};

}  // namespace tileweave

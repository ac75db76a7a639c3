// One row's filters and draw by one block: what SamplingRow does on the CPU.
//
// All filters but min-p keep the candidates from some place on in one total order (score, of equal
// ones the id), so what is left is a threshold, not a list. Scores have the reference's bits (fp32,
// one rounding per operation); weights are fp32, their sums fp64 in an order that V alone decides.
// So the token is the reference's unless a cumulative probability of the reference lies within
// sample_error_bound of the draw, or within that and the rounding to fp32 of top-p's 1 - p.
#pragma once

#include <cstdint>

#include "tileweave/kernels/sampling/philox.h"
#include "tileweave/kernels/sampling/sample_block.cuh"
#include "tileweave/kernels/sampling/sample_top_p.cuh"

namespace tileweave {

struct SampleRowSettings {
  float temperature, top_p, min_p, repetition_penalty;
  std::int32_t top_k, history_length;
  const std::int32_t* history;
  double uniform;
};

/// A logit as the filters see it: NaN is -inf.
__device__ __forceinline__ float score_of(float logit, float temperature) {
  const float score = logit == logit ? logit : -INFINITY;
  return temperature == 0 || temperature == 1 ? score : __fdiv_rn(score, temperature);
}

/// Fills the block's row of scores, -inf behind its end; returns the best of them. Ends with a
/// barrier. The penalty starts from the logit, so a token that the history names twice gets it
/// once.
__device__ inline std::uint64_t fill_scores(SampleShared& shared, const float* logits,
                                            std::int32_t cols, std::int32_t stride,
                                            const SampleRowSettings& row, float* scores) {
  constexpr int kInFlight = 8;
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  BestSeen seen;
  for (std::int32_t from = thread; from < stride; from += kInFlight * kSampleThreads) {
    float logit[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const std::int32_t at = from + u * kSampleThreads;
      logit[u] = at < cols ? logits[at] : -INFINITY;
    }
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      const std::int32_t at = from + u * kSampleThreads;
      if (at >= stride) break;
      scores[at] = score_of(logit[u], row.temperature);
      seen.look_at(scores[at], at);
    }
  }
  if (row.repetition_penalty != 1 && row.history_length > 0) {
    __syncthreads();
    for (std::int32_t j = thread; j < row.history_length; j += kSampleThreads) {
      const std::int32_t id = row.history[j];
      if (id < 0 || id >= cols) continue;
      const float plain = score_of(logits[id], 1);
      const float penalised = plain < 0 ? __fmul_rn(plain, row.repetition_penalty)
                                        : __fdiv_rn(plain, row.repetition_penalty);
      scores[id] = score_of(penalised, row.temperature);
    }
    __syncthreads();
    seen = {};
    visit_row(scores, stride / 4, [&](float score, std::int32_t id) { seen.look_at(score, id); });
  }
  return block_max(shared.maxima, seen.best());
}

/// Key of the k-th largest score, 1 <= k <= V, by radix selection from the highest bits down.
__device__ inline std::uint32_t kth_largest_key(SampleShared& shared, const float* scores,
                                                std::int32_t quads, std::uint32_t k) {
  std::uint32_t prefix = 0, decided = 0;
#pragma unroll 1
  for (int level = 0; level < 3; ++level) {
    const int shift = level == 0 ? 21 : level == 1 ? 10 : 0;
    const std::uint32_t bins = level < 2 ? 2048 : 1024;
    for (int b = static_cast<int>(threadIdx.x); b < kSampleBins; b += kSampleThreads) {
      shared.histogram[b] = 0;
    }
    __syncthreads();
    visit_row(scores, quads, [&](float score, std::int32_t) {
      const std::uint32_t key = ordered_key(score);
      if ((key & decided) == prefix) atomicAdd(&shared.histogram[(key >> shift) & (bins - 1)], 1U);
    });
    __syncthreads();
    // Four bins per thread, the highest first.
    const std::uint32_t first = kSampleBins - 1 - 4 * threadIdx.x;
    std::uint32_t of_bin[4], mine = 0;
#pragma unroll
    for (std::uint32_t b = 0; b < 4; ++b) {
      of_bin[b] = shared.histogram[first - b];
      mine += of_bin[b];
    }
    std::uint32_t before = block_sum_before(shared.counts, mine);
#pragma unroll
    for (std::uint32_t b = 0; b < 4; ++b) {
      if (before < k && k <= before + of_bin[b]) {
        shared.bin = first - b;
        shared.rest = k - before;
      }
      before += of_bin[b];
    }
    __syncthreads();
    prefix |= shared.bin << shift;
    decided |= (bins - 1) << shift;
    k = shared.rest;
    __syncthreads();
  }
  return prefix;
}

/// What is left of the row's weights after all filters.
struct KeptWeight {
  float highest, min_p;
  std::uint64_t lowest;

  __device__ __forceinline__ float operator()(float score, std::int32_t id) const {
    const float weight = weight_of(score, highest);
    return order_of(score, id) >= lowest && weight >= min_p ? weight : 0.0F;
  }
};

/// The part into which `target` falls, the last one that weighs anything at worst; takes the parts
/// before it off the target.
__device__ inline int part_of(const double (&parts)[kSampleWarps], double& target) {
  double before = 0, before_chosen = 0;
  int chosen = 0;
  for (int w = 0; w < kSampleWarps; ++w) {
    if (parts[w] > 0) {
      chosen = w;
      before_chosen = before;
      if (before + parts[w] > target) break;
    }
    before += parts[w];
  }
  target -= before_chosen;
  return chosen;
}

/// Draws from quads [begin, end) by one warp, in ascending ids: the first element whose cumulative
/// weight exceeds `target`; at worst, by rounding, the last one that weighs anything.
__device__ inline std::int32_t draw_by_warp(const float* scores, const KeptWeight& kept,
                                            std::int32_t begin, std::int32_t end, double target) {
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  std::int32_t last = 0;
  double before = 0;
  for (std::int32_t from = begin; from < end; from += 32) {
    const std::int32_t quad = from + lane;
    double cumulative[4], sum = 0;
    std::int32_t last_of_quad = -1;
#pragma unroll
    for (std::int32_t e = 0; e < 4; ++e) {
      const std::int32_t id = 4 * quad + e;
      const float weight = quad < end ? kept(scores[id], id) : 0.0F;
      if (weight > 0) last_of_quad = id;
      sum += double{weight};
      cumulative[e] = weight > 0 ? sum : -1;
    }
    const double inclusive = warp_inclusive_sum(sum);
    double others = __shfl_up_sync(0xffffffffU, inclusive, 1);
    if (lane == 0) others = 0;
    others += before;
    std::int32_t id = last_of_quad;
#pragma unroll
    for (std::int32_t e = 3; e >= 0; --e) {
      if (cumulative[e] > 0 && others + cumulative[e] > target) id = 4 * quad + e;
    }
    const bool hit = last_of_quad >= 0 && others + sum > target;
    const unsigned int hits = __ballot_sync(0xffffffffU, hit);
    if (hits != 0) return __shfl_sync(0xffffffffU, id, __ffs(static_cast<int>(hits)) - 1);
    const std::uint32_t highest =
        __reduce_max_sync(0xffffffffU, static_cast<std::uint32_t>(last_of_quad + 1));
    if (highest != 0) last = static_cast<std::int32_t>(highest) - 1;
    before += __shfl_sync(0xffffffffU, inclusive, 31);
  }
  return last;
}

struct QuadRange {
  std::int32_t begin, end;
};
inline constexpr double kNotDrawn = -1;

/// The warp's share of `range` that the draw falls into; `target` is then counted from its begin.
/// While it is kNotDrawn it is drawn first: `uniform` of the range's weight.
__device__ inline QuadRange narrow(SampleShared& shared, const float* scores,
                                   const KeptWeight& kept, const QuadRange& range, double uniform,
                                   double& target) {
  const auto warp = static_cast<std::int32_t>(threadIdx.x / 32);
  const std::int32_t in_range = range.end - range.begin;
  const std::int32_t part = (in_range + 32 * kSampleWarps - 1) / (32 * kSampleWarps) * 32;
  const auto part_at = [&](std::int32_t w) {
    const std::int32_t begin = min(range.begin + w * part, range.end);
    return QuadRange{begin, min(begin + part, range.end)};
  };
  const QuadRange mine = part_at(warp);
  double weight = 0;
  visit<32>(scores, mine.begin + static_cast<std::int32_t>(threadIdx.x % 32), mine.end,
            [&](float score, std::int32_t id) { weight += double{kept(score, id)}; });
  weight = warp_sum(weight);
  if (threadIdx.x % 32 == 0) shared.sums[warp] = weight;
  __syncthreads();
  if (target == kNotDrawn) {
    double total = 0;
    for (int w = 0; w < kSampleWarps; ++w) total += shared.sums[w];
    target = uniform * total;
  }
  const QuadRange chosen = part_at(part_of(shared.sums, target));
  __syncthreads();
  return chosen;
}

/// The token of one row, in thread 0. `scores` is the block's own row of scratch.
__device__ inline std::int32_t sample_row(SampleShared& shared, const float* logits,
                                          std::int32_t cols, std::int32_t stride,
                                          const SampleRowSettings& row, float* scores) {
  const std::uint64_t best = fill_scores(shared, logits, cols, stride, row, scores);
  if (row.temperature == 0) return column_of_best(best);
  const float highest = value_of_key(key_of_best(best));
  if (highest == -INFINITY) return 0;
  const std::int32_t quads = stride / 4;
  KeptWeight kept{.highest = highest, .min_p = row.min_p, .lowest = 0};
  if (row.top_k > 0 && row.top_k < cols) {
    const auto k = static_cast<std::uint32_t>(row.top_k);
    kept.lowest = order_of(kth_largest_key(shared, scores, quads, k), 0);
  }
  if (row.top_p < 1) {
    kept.lowest = first_in_top_p(shared, scores, quads, highest, kept.lowest, row.top_p);
  }
  double target = kNotDrawn;
  QuadRange range{0, quads};
  range = narrow(shared, scores, kept, range, row.uniform, target);
  range = narrow(shared, scores, kept, range, row.uniform, target);
  if (threadIdx.x >= 32) return 0;
  return draw_by_warp(scores, kept, range.begin, range.end, target);
}

}  // namespace tileweave

// Top-p by one block: the first candidate that stays, found without sorting a whole row.
//
// It lies in a bracket of the order. A histogram of scores says about where, one pass over the row
// then says exactly on which side of two cuts; what is still too much to sort (many equal scores)
// is halved. Every step is decided by sums of the weights themselves, in an order that V alone
// decides, so the histogram costs time at worst.
#pragma once

#include <cstdint>

#include "tileweave/kernels/sampling/sample_block.cuh"

namespace tileweave {

/// Candidates leave as long as the probability of those that left, the next one included, is at
/// most 1 - p.
struct TopP {
  double total;  // weight of all candidates
  float limit;   // 1 - p

  __device__ __forceinline__ bool leaves(double mass) const {
    return static_cast<float>(mass / total) <= limit;
  }
};

/// Where the first that stays lies: candidates below `low` leave, some below `high` do not.
struct TopPBracket {
  std::uint64_t low, high;
  std::uint32_t count;  // candidates in it
  double left;          // weight of those below it

  __device__ __forceinline__ bool has(std::uint64_t order) const {
    return order >= low && order < high;
  }
  /// Keeps the side of `cut` that has the boundary; below it lie `below` of the bracket's
  /// candidates, with `mass`. True: the upper side.
  __device__ bool keep_side(const TopP& top, std::uint64_t cut, double mass, std::uint32_t below) {
    const bool upper = top.leaves(left + mass);
    if (upper) {
      low = low < cut ? cut : low;
      left += mass;
      count -= below;
    } else {
      high = cut < high ? cut : high;
      count = below;
    }
    return upper;
  }
};

/// Narrows the bracket to the neighbourhood of the boundary by a histogram of scores.
__device__ inline void cut_by_histogram(SampleShared& shared, const float* scores,
                                        std::int32_t quads, float highest, const TopP& top,
                                        TopPBracket& bracket) {
  // What is lighter than an equal share of 1 - p leaves in any case; bins are for the rest.
  const double goal = double{top.limit} * top.total;
  const float base = highest + logf(static_cast<float>(goal / bracket.count));
  const float width = (highest - base) / kSampleBins;
  if (!(width > 0) || !isfinite(base)) return;
  for (int b = static_cast<int>(threadIdx.x); b < kSampleBins; b += kSampleThreads) {
    shared.histogram[b] = 0;
  }
  if (threadIdx.x < 2) shared.cuts[threadIdx.x] = kSampleBins;
  __syncthreads();
  double weight = 0;
  std::uint32_t mine = 0;
  visit_row(scores, quads, [&](float score, std::int32_t id) {
    if (!bracket.has(order_of(score, id))) return;
    if (score < base) {
      weight += double{weight_of(score, highest)};
      ++mine;
    } else {
      const int bin = static_cast<int>((score - base) / width);
      atomicAdd(&shared.histogram[min(bin, kSampleBins - 1)], 1U);
    }
  });
  const double mass = block_sum(shared.sums, weight);
  const std::uint32_t below = block_sum(shared.counts, mine);
  if (!bracket.keep_side(top, order_of(base, 0), mass, below)) return;

  // Weights of bins by their middles, four bins per thread; off by less than a hundredth as long as
  // the bins are narrow.
  double of_bin[4], of_thread = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const auto bin = static_cast<float>(4 * threadIdx.x + i);
    of_bin[i] =
        double{expf(base - highest + (bin + 0.5F) * width)} * shared.histogram[4 * threadIdx.x + i];
    of_thread += of_bin[i];
  }
  double cumulative = bracket.left + block_sum_before(shared.sums, of_thread);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    cumulative += of_bin[i];
    if (cumulative > 0.99 * goal) atomicMin(&shared.cuts[0], 4 * threadIdx.x + i);
    if (cumulative > 1.01 * goal) atomicMin(&shared.cuts[1], 4 * threadIdx.x + i);
  }
  __syncthreads();
  const std::uint64_t first = order_of(base + static_cast<float>(shared.cuts[0]) * width, 0);
  const std::uint64_t second = order_of(base + static_cast<float>(shared.cuts[1] + 1) * width, 0);

  double before_first = 0, before_second = 0;
  std::uint32_t num_first = 0, num_second = 0;
  visit_row(scores, quads, [&](float score, std::int32_t id) {
    const std::uint64_t order = order_of(score, id);
    if (!bracket.has(order) || order >= second) return;
    const double of_this = double{weight_of(score, highest)};
    if (order < first) {
      before_first += of_this;
      ++num_first;
    } else {
      before_second += of_this;
      ++num_second;
    }
  });
  before_first = block_sum(shared.sums, before_first);
  before_second = block_sum(shared.sums, before_second);
  num_first = block_sum(shared.counts, num_first);
  num_second = block_sum(shared.counts, num_second);
  if (bracket.keep_side(top, first, before_first, num_first)) {
    bracket.keep_side(top, second, before_second, num_second);
  }
}

/// Halves the bracket. Ids are part of the order, so equal scores are halved like others.
__device__ inline void cut_in_half(SampleShared& shared, const float* scores, std::int32_t quads,
                                   float highest, const TopP& top, TopPBracket& bracket) {
  const std::uint64_t cut = bracket.low + (bracket.high - bracket.low) / 2;
  double weight = 0;
  std::uint32_t mine = 0;
  visit_row(scores, quads, [&](float score, std::int32_t id) {
    const std::uint64_t order = order_of(score, id);
    if (!bracket.has(order) || order >= cut) return;
    weight += double{weight_of(score, highest)};
    ++mine;
  });
  const double mass = block_sum(shared.sums, weight);
  bracket.keep_side(top, cut, mass, block_sum(shared.counts, mine));
}

/// The first that stays of at most kSampleSorted candidates; the bracket's end if none does.
__device__ inline std::uint64_t first_of_sorted(SampleShared& shared, const float* scores,
                                                std::int32_t quads, float highest, const TopP& top,
                                                const TopPBracket& bracket) {
  if (threadIdx.x == 0) {
    shared.gathered = 0;
    shared.found = bracket.count;
  }
  __syncthreads();
  visit_row(scores, quads, [&](float score, std::int32_t id) {
    const std::uint64_t order = order_of(score, id);
    if (bracket.has(order)) shared.orders[atomicAdd(&shared.gathered, 1U)] = order;
  });
  std::uint32_t sorted = 2;
  while (sorted < bracket.count) sorted *= 2;
  for (std::uint32_t i = bracket.count + threadIdx.x; i < sorted; i += kSampleThreads) {
    shared.orders[i] = ~std::uint64_t{0};
  }
  sort_orders(shared.orders, sorted);

  constexpr std::uint32_t kPerThread = kSampleSorted / kSampleThreads;
  double of_candidate[kPerThread], of_thread = 0;
#pragma unroll
  for (std::uint32_t i = 0; i < kPerThread; ++i) {
    const std::uint32_t at = kPerThread * threadIdx.x + i;
    of_candidate[i] = 0;
    if (at < bracket.count) {
      of_candidate[i] = double{weight_of(value_of_key(key_of_best(shared.orders[at])), highest)};
    }
    of_thread += of_candidate[i];
  }
  double mass = bracket.left + block_sum_before(shared.sums, of_thread);
#pragma unroll
  for (std::uint32_t i = 0; i < kPerThread; ++i) {
    const std::uint32_t at = kPerThread * threadIdx.x + i;
    mass += of_candidate[i];
    if (at < bracket.count && !top.leaves(mass)) atomicMin(&shared.found, at);
  }
  __syncthreads();
  const std::uint64_t stays =
      shared.found < bracket.count ? shared.orders[shared.found] : bracket.high;
  __syncthreads();
  return stays;
}

/// First candidate in the order, from `lowest` on, that top-p leaves; the last one stays always.
__device__ inline std::uint64_t first_in_top_p(SampleShared& shared, const float* scores,
                                               std::int32_t quads, float highest,
                                               std::uint64_t lowest, float p) {
  double weight = 0;
  std::uint32_t mine = 0;
  std::uint64_t most = 0, least = ~std::uint64_t{0};
  visit_row(scores, quads, [&](float score, std::int32_t id) {
    const std::uint64_t order = order_of(score, id);
    if (order < lowest) return;
    weight += double{weight_of(score, highest)};
    ++mine;
    most = most < order ? order : most;
    least = order < least ? order : least;
  });
  const TopP top{.total = block_sum(shared.sums, weight),
                 .limit = static_cast<float>(1.0 - double{p})};
  const std::uint64_t last = block_max(shared.maxima, most);
  const std::uint64_t first = ~block_max(shared.maxima, ~least);
  TopPBracket bracket{
      .low = first, .high = last + 1, .count = block_sum(shared.counts, mine), .left = 0};
  if (bracket.count > kSampleSorted) {
    cut_by_histogram(shared, scores, quads, highest, top, bracket);
  }
  while (bracket.count > kSampleSorted) {
    cut_in_half(shared, scores, quads, highest, top, bracket);
  }
  const std::uint64_t stays = first_of_sorted(shared, scores, quads, highest, top, bracket);
  return stays < last ? stays : last;
}

}  // namespace tileweave

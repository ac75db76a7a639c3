// The inner loops of the CPU's paged attention, compiled once per SIMD target of this machine
// family.
//
// Included several times by Highway's foreach_target (see paged_attention_cpu.cpp); no include
// guard. Keys are taken in chunks at fixed absolute positions, so that lane j of a chunk is the
// same key whoever asks. A query's numbers pass through the same operations in the same order
// whichever queries share the loop: products with a key add up in ascending dimension, weighted
// values in ascending key, and keys that a query does not see take no part at all.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "hwy/highway.h"
// After highway.h; has its own guard per target.
#include "hwy/contrib/math/math-inl.h"
#include "tileweave/kernels/attention/attention_chunk.h"

HWY_BEFORE_NAMESPACE();
namespace tileweave {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using ChunkTag = hn::CappedTag<float, kAttentionUnit>;

/// to[d * kAttentionChunk + j] = rows[j][d]; what lies beyond `count` keys is of no consequence.
/// Brings `next` rows near, a few between the loads: a burst of them would only wait for memory.
void transpose_keys(const float* const* rows, std::int64_t count, const float* const* next,
                    std::int64_t head_dim, float* to) {
  const ChunkTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float quads[4 * kAttentionUnit];  // [dimension][4 keys]
  for (std::int64_t j = 0; j < count; j += 4) {
    const float* const row0 = rows[j];
    const float* const row1 = rows[std::min(j + 1, count - 1)];
    const float* const row2 = rows[std::min(j + 2, count - 1)];
    const float* const row3 = rows[std::min(j + 3, count - 1)];
    float* at = to + j;
    std::int64_t i = 0;
    for (; i + lanes <= head_dim; i += lanes) {
      for (std::int64_t k = 0; k < 4; ++k) __builtin_prefetch(next[j + k] + i);
      hn::StoreInterleaved4(hn::LoadU(d, row0 + i), hn::LoadU(d, row1 + i), hn::LoadU(d, row2 + i),
                            hn::LoadU(d, row3 + i), d, quads);
      for (std::int64_t k = 0; k < lanes; ++k, at += kAttentionChunk) {
        std::memcpy(at, quads + 4 * k, 4 * sizeof(float));
      }
    }
    for (; i < head_dim; ++i, at += kAttentionChunk) {
      at[0] = row0[i];
      at[1] = row1[i];
      at[2] = row2[i];
      at[3] = row3[i];
    }
  }
}

/// Row k of a matrix, of rows that lie anywhere, and of such rows while others are brought near.
struct StridedRows {
  const float* first;
  std::int64_t stride;
  HWY_INLINE const float* at(std::int64_t k, std::int64_t col) const {
    return first + k * stride + col;
  }
};
struct ScatteredRows {
  const float* const* rows;
  HWY_INLINE const float* at(std::int64_t k, std::int64_t col) const { return rows[k] + col; }
};
struct PrefetchingRows {
  const float* const* rows;
  const float* const* next;
  HWY_INLINE const float* at(std::int64_t k, std::int64_t col) const {
    __builtin_prefetch(next[k] + col);
    __builtin_prefetch(next[k] + col + kAttentionUnit);
    return rows[k] + col;
  }
};

/// sums[q][col ..] += factors[q][k] * row k[col ..] for k in [begin, end), two vectors of
/// columns, kQueries queries: the one loop behind both products.
template <int kQueries, class D, class Rows>
HWY_INLINE void accumulate(D d, const float* const* factors, const Rows& rows, std::int64_t begin,
                           std::int64_t end, float* const* sums, std::int64_t col) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto load = [&](int q, std::int64_t at) HWY_ATTR {
    return q < kQueries ? hn::LoadU(d, sums[q] + col + at) : hn::Zero(d);
  };
  auto sum00 = load(0, 0), sum01 = load(0, lanes);
  auto sum10 = load(1, 0), sum11 = load(1, lanes);
  auto sum20 = load(2, 0), sum21 = load(2, lanes);
  auto sum30 = load(3, 0), sum31 = load(3, lanes);
  for (std::int64_t k = begin; k < end; ++k) {
    const float* const row = rows.at(k, col);
    const auto v0 = hn::LoadU(d, row);
    const auto v1 = hn::LoadU(d, row + lanes);
    const auto f0 = hn::Set(d, factors[0][k]);
    sum00 = hn::MulAdd(f0, v0, sum00);
    sum01 = hn::MulAdd(f0, v1, sum01);
    if constexpr (kQueries > 1) {
      const auto f1 = hn::Set(d, factors[1][k]);
      sum10 = hn::MulAdd(f1, v0, sum10);
      sum11 = hn::MulAdd(f1, v1, sum11);
    }
    if constexpr (kQueries > 2) {
      const auto f2 = hn::Set(d, factors[2][k]);
      sum20 = hn::MulAdd(f2, v0, sum20);
      sum21 = hn::MulAdd(f2, v1, sum21);
    }
    if constexpr (kQueries > 3) {
      const auto f3 = hn::Set(d, factors[3][k]);
      sum30 = hn::MulAdd(f3, v0, sum30);
      sum31 = hn::MulAdd(f3, v1, sum31);
    }
  }
  const auto store = [&](int q, auto low, auto high) HWY_ATTR {
    if (q >= kQueries) return;
    hn::StoreU(low, d, sums[q] + col);
    hn::StoreU(high, d, sums[q] + col + lanes);
  };
  store(0, sum00, sum01);
  store(1, sum10, sum11);
  store(2, sum20, sum21);
  store(3, sum30, sum31);
}

/// The same for all `cols` columns, a multiple of kAttentionUnit.
template <int kQueries, class Rows>
HWY_INLINE void accumulate_columns(const float* const* factors, const Rows& rows,
                                   std::int64_t begin, std::int64_t end, float* const* sums,
                                   std::int64_t cols) {
  const ChunkTag d;
  const hn::CappedTag<float, kAttentionUnit / 2> half;
  const auto step = 2 * static_cast<std::int64_t>(hn::Lanes(d));
  const auto half_step = 2 * static_cast<std::int64_t>(hn::Lanes(half));
  std::int64_t col = 0;
  for (; col + step <= cols; col += step) {
    accumulate<kQueries>(d, factors, rows, begin, end, sums, col);
  }
  for (; col < cols; col += half_step) {
    accumulate<kQueries>(half, factors, rows, begin, end, sums, col);
  }
}

/// Scores of `seen` keys become weights relative to the highest score so far; what was summed
/// before is rescaled to that.
HWY_INLINE void update_softmax(float* scores, std::int64_t padded_dim, AttentionQuery& query) {
  const ChunkTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto highest = lowest;
  for (std::int64_t j = 0; j < kAttentionChunk; j += lanes) {
    const auto seen =
        hn::Lt(hn::Iota(d, static_cast<float>(j)), hn::Set(d, static_cast<float>(query.seen)));
    const auto score = hn::IfThenElse(seen, hn::LoadU(d, scores + j), lowest);
    hn::StoreU(score, d, scores + j);
    highest = hn::Max(highest, score);
  }
  const float top = std::max(query.highest, hn::GetLane(hn::MaxOfLanes(d, highest)));
  auto sum = hn::Zero(d);
  for (std::int64_t j = 0; j < kAttentionChunk; j += lanes) {
    const auto score = hn::LoadU(d, scores + j);
    const auto weight = hn::Exp(d, hn::Sub(score, hn::Set(d, top)));
    // A key of NaNs must show, one that is not seen (-inf) must not.
    const auto shown = hn::IfThenElse(hn::IsNaN(score), score, weight);
    const auto kept = hn::IfThenZeroElse(hn::Eq(score, lowest), shown);
    hn::StoreU(kept, d, scores + j);
    sum = hn::Add(sum, kept);
  }
  if (top > query.highest && query.weight != 0) {
    const auto factor = hn::Exp(d, hn::Set(d, query.highest - top));
    for (std::int64_t i = 0; i < padded_dim; i += lanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, query.sums + i), factor), d, query.sums + i);
    }
    query.weight *= hn::GetLane(factor);
  }
  query.weight += hn::GetLane(hn::SumOfLanes(d, sum));
  query.highest = top;
}

template <int kQueries, class Values>
void attend_queries(const AttentionChunk& chunk, const Values& values, AttentionQuery* queries) {
  std::fill_n(chunk.scores, kQueries * kAttentionChunk, 0.0F);
  const float* q[kQueries];
  const float* weights[kQueries];
  float* scores[kQueries];
  float* sums[kQueries];
  std::int64_t seen_by_all = kAttentionChunk;
  for (int i = 0; i < kQueries; ++i) {
    q[i] = queries[i].q;
    weights[i] = scores[i] = chunk.scores + i * kAttentionChunk;
    sums[i] = queries[i].sums;
    seen_by_all = std::min(seen_by_all, queries[i].seen);
  }
  accumulate_columns<kQueries>(q, StridedRows{chunk.keys, kAttentionChunk}, 0, chunk.head_dim,
                               scores, kAttentionChunk);
  for (int i = 0; i < kQueries; ++i) update_softmax(scores[i], chunk.padded_dim, queries[i]);
  accumulate_columns<kQueries>(weights, values, 0, seen_by_all, sums, chunk.padded_dim);
  for (int i = 0; i < kQueries; ++i) {  // later rows see keys that earlier ones do not
    if (queries[i].seen == seen_by_all) continue;
    accumulate_columns<1>(weights + i, values, seen_by_all, queries[i].seen, sums + i,
                          chunk.padded_dim);
  }
}

template <class Values>
void attend_up_to_four(const AttentionChunk& chunk, const Values& values, AttentionQuery* queries,
                       std::int64_t count) {
  if (count >= 4) return attend_queries<4>(chunk, values, queries);
  if (count == 3) return attend_queries<3>(chunk, values, queries);
  if (count == 2) return attend_queries<2>(chunk, values, queries);
  attend_queries<1>(chunk, values, queries);
}

/// At least one query.
void attend_chunk(const AttentionChunk& chunk, AttentionQuery* queries, std::int64_t count) {
  static_assert(kAttentionQueries == 4);
  attend_up_to_four(chunk, PrefetchingRows{chunk.values, chunk.next_values}, queries, count);
  for (std::int64_t i = 4; i < count; i += 4) {
    attend_up_to_four(chunk, ScatteredRows{chunk.values}, queries + i, count - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tileweave
HWY_AFTER_NAMESPACE();

// AttentionChunk, AttentionQuery: what the inner loops of the CPU's attention work on. Plain data
// between paged_attention_cpu.cpp and the SIMD code that it dispatches to.
#pragma once

#include <cstdint>

namespace tileweave {

/// Keys per chunk. Chunk c holds keys c * kAttentionChunk onwards, whatever the cache's pages.
inline constexpr std::int64_t kAttentionChunk = 64;
/// Rows of values and sums are padded to whole units; no vector is longer than one.
inline constexpr std::int64_t kAttentionUnit = 16;

/// Queries that share one pass over a chunk.
inline constexpr std::int64_t kAttentionQueries = 4;

/// One chunk of one kv head.
struct AttentionChunk {
  const float* keys = nullptr;                // (head_dim, kAttentionChunk): transposed
  const float* const* values = nullptr;       // per key: padded_dim elements
  const float* const* next_values = nullptr;  // of the next chunk, to be brought near
  float* scores = nullptr;                    // scratch: kAttentionQueries chunks
  std::int64_t head_dim = 0;
  std::int64_t padded_dim = 0;
};

/// One query head of one row: how far its softmax has come.
struct AttentionQuery {
  const float* q = nullptr;  // (head_dim), scaled
  float* sums = nullptr;     // (padded_dim): weighted values so far, relative to `highest`
  float highest = 0;         // score so far
  float weight = 0;          // sum of weights so far
  std::int64_t seen = 0;     // keys of the current chunk, at least 1
};

}  // namespace tileweave

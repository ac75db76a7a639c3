// How the keys of one query row are cut for a GPU: passes, segments, and which split takes which.
//
// A pass is kAttentionPass keys, computed by one block at once; a segment is one or more passes
// whose partial result (highest score, weight, weighted values) is made from nothing. Both lie at
// absolute positions, so the bits of a row do not depend on who computes what: partial results are
// merged in ascending order, whether by the block that made them or through scratch. Segments grow
// with the position, so that a long past has few partial results. Splits are only a schedule. Pure,
// host and device.
#pragma once

#include <cstdint>

#include "tileweave/core/target.h"

namespace tileweave {

inline constexpr int kAttentionPass = 128;  // keys
inline constexpr int kAttentionSlice = 16;  // keys of a pass that one warp scores
inline constexpr int kAttentionSlices = kAttentionPass / kAttentionSlice;
inline constexpr int kAttentionMaxHeads = 8;  // query heads of one kv head
/// So many passes one block takes alone, as one segment: sooner done than a second block's result
/// fetched.
inline constexpr int kAttentionAlone = 2;
inline constexpr int kAttentionMostSplits = 32;
/// Scores are computed in units of log 2: weights are powers of two.
inline constexpr float kLog2E = 1.44269504F;

/// Passes that hold `keys` keys.
TW_HOST_DEVICE constexpr int attention_passes(std::int64_t keys) {
  return static_cast<int>((keys + kAttentionPass - 1) / kAttentionPass);
}

struct AttentionSegments {
  static constexpr int kTwos = 64, kEights = 256;  // first pass of longer segments

  /// Passes of the segment that holds pass `pass`.
  TW_HOST_DEVICE static constexpr int length(int pass) {
    return pass < kTwos ? kAttentionAlone : pass < kEights ? 8 : 32;
  }
  /// First pass of a segment at or after `pass`.
  TW_HOST_DEVICE static constexpr int start_from(int pass) {
    const int n = length(pass);  // a power of two
    return (pass + n - 1) & ~(n - 1);
  }
  /// Number of the segment that holds `pass`.
  TW_HOST_DEVICE static constexpr int index(int pass) {
    constexpr int kOfTwos = kTwos / kAttentionAlone;
    if (pass < kTwos) return pass / kAttentionAlone;
    if (pass < kEights) return kOfTwos + (pass - kTwos) / 8;
    return kOfTwos + (kEights - kTwos) / 8 + (pass - kEights) / 32;
  }
  /// Segments of a row of `passes` passes.
  TW_HOST_DEVICE static constexpr int count(int passes) {
    return passes == 0 ? 0 : index(passes - 1) + 1;
  }
};

/// Which passes of a row each of `splits` works takes: whole segments, in ascending order. Split 0
/// always has the first pass; a split may have none.
struct AttentionSplits {
  int splits;
  int per_split;  // passes, before they are rounded to segments

  /// For rows of at most `passes` passes.
  TW_HOST_DEVICE static constexpr AttentionSplits of(int passes, int splits) {
    if (passes <= kAttentionAlone || splits <= 1) return {splits, passes < 1 ? 1 : passes};
    const auto share = static_cast<int>(static_cast<unsigned>(passes + splits - 1) /
                                        static_cast<unsigned>(splits));
    return {splits, share < kAttentionAlone ? kAttentionAlone : share};
  }
  /// First pass of a split in a row of `passes` passes; that of split `splits` is the end.
  TW_HOST_DEVICE constexpr int begin(int split, int passes) const {
    const int nominal = split * per_split;
    if (split >= splits || nominal >= passes) return passes;
    const int first = AttentionSegments::start_from(nominal);
    return first < passes ? first : passes;
  }
  TW_HOST_DEVICE constexpr int end(int split, int passes) const { return begin(split + 1, passes); }
  TW_HOST_DEVICE constexpr bool empty(int split, int passes) const {
    return begin(split, passes) >= end(split, passes);
  }
  /// Splits other than 0 that have no pass of a row of `passes` passes.
  TW_HOST_DEVICE constexpr int num_idle(int passes) const {
    int idle = 0;
    TW_ROLLED_LOOP
    for (int i = 1; i < splits; ++i) idle += empty(i, passes) ? 1 : 0;
    return idle;
  }
};

inline constexpr std::int64_t kAttentionSms = 132;  // that splits and buffers are chosen for

/// Splits that give a GPU's blocks enough to do: about one work per SM of an H200, two where there
/// are many pairs of a row and a kv head, and none that no row could fill.
constexpr std::int64_t attention_splits(std::int64_t pairs, std::int64_t most_keys) {
  std::int64_t splits =
      pairs <= kAttentionSms / 2 ? kAttentionSms / pairs : 2 * kAttentionSms / pairs;
  const int passes = attention_passes(most_keys);
  if (passes <= kAttentionAlone) return 1;
  const std::int64_t segments = AttentionSegments::count(passes);
  splits = splits < segments ? splits : segments;
  return splits < 1 ? 1 : splits < kAttentionMostSplits ? splits : kAttentionMostSplits;
}

}  // namespace tileweave

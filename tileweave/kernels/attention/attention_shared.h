// AttentionShared: where a GPU's attention block keeps what in shared memory. Bytes; host and
// device.
#pragma once

#include "tileweave/kernels/attention/attention_segments.h"

namespace tileweave {

inline constexpr int kAttentionThreads = 32 * kAttentionSlices;
inline constexpr int kAttentionMostBuffers = 2;

struct AttentionShared {
  int head_dim;

  /// Between rows of keys, values and queries: an odd number of 16-byte units, so that eight
  /// neighbouring rows lie in different banks.
  TW_HOST_DEVICE constexpr int pitch() const { return 2 * head_dim + 16; }
  /// (slice, head): highest score and sum of weights.
  TW_HOST_DEVICE constexpr int stats() const { return 0; }
  /// Queries, this step's key and its value: where the kernel turns heads itself.
  TW_HOST_DEVICE constexpr int queries() const {
    return stats() + kAttentionSlices * kAttentionMaxHeads * 8;
  }
  TW_HOST_DEVICE constexpr int own_key() const { return queries() + kAttentionMaxHeads * pitch(); }
  TW_HOST_DEVICE constexpr int own_value() const { return own_key() + pitch(); }
  /// f32: cosines, sines, norm weights of queries, norm weights of keys.
  TW_HOST_DEVICE constexpr int turning() const { return own_value() + pitch(); }
  /// Keys of the first buffer, its values, those of the next one.
  TW_HOST_DEVICE constexpr int keys() const { return turning() + 12 * head_dim; }
  TW_HOST_DEVICE constexpr int region() const { return kAttentionPass * pitch(); }
  /// f32 (slice, head, sums_pitch): weighted values by warp; `buffers`: passes whose keys and
  /// values lie here at once.
  TW_HOST_DEVICE constexpr int sums(int buffers) const { return keys() + buffers * 2 * region(); }
  /// Floats between heads: rows of eight heads lie in different banks.
  TW_HOST_DEVICE static constexpr int sums_pitch(int head_dim) { return head_dim + 8; }
  /// `heads`: query heads of a kv head.
  TW_HOST_DEVICE constexpr int bytes(int buffers, int heads) const {
    return sums(buffers) + kAttentionSlices * heads * sums_pitch(head_dim) * 4;
  }
};

/// head_dims that the GPU kernels are compiled for.
constexpr bool is_attention_head_dim(std::int64_t dim) {
  return dim == 64 || dim == 80 || dim == 96 || dim == 128;
}

/// Floats of scratch for one segment of one row and kv head: weighted values of every query head,
/// then highest score and weight of each.
TW_HOST_DEVICE constexpr std::int64_t attention_partial_floats(std::int64_t heads,
                                                               std::int64_t head_dim) {
  return heads * (head_dim + 2);
}

}  // namespace tileweave

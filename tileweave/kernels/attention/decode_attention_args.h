// DecodeAttentionArgs: the argument struct of every decode attention kernel, and what its works
// are.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/dtype.h"
#include "tileweave/kernels/attention/attention_shared.h"
#include "tileweave/plan/resources.h"
#include "tileweave/sync/access.h"

namespace tileweave {

/// Of the f32 form; that of bf16 needs what AttentionShared says, too. Two blocks have the
/// registers of an SM.
inline constexpr KernelResources kDecodeAttentionResources{.threads = kAttentionThreads,
                                                           .registers_per_thread = 128};

/// Indices of the node's operands, and slots of the kernel's SyncContext.
struct DecodeAttentionOperands {
  static constexpr int kQkv = 0;
  static constexpr int kPositions = 1;
  static constexpr int kSlotsOfRows = 2;
  static constexpr int kSequenceOfRow = 3;
  static constexpr int kPageTable = 4;
  static constexpr int kInvFreq = 5;
  static constexpr int kKPast = 6;
  static constexpr int kVPast = 7;
  static constexpr int kKStep = 8;
  static constexpr int kVStep = 9;
  static constexpr int kOut = 10;
  static constexpr int kQNorm = 11;  // only with the QK-norm
  static constexpr int kKNorm = 12;

  static constexpr int kSlotQkv = 0;
  static constexpr int kSlotKStep = 1;
  static constexpr int kSlotVStep = 2;
  static constexpr int kSlotOut = 3;
  static constexpr int kSlots = 4;
};

/// Work w: row row_of(w), kv head group_of(w), split split_of(w) of the keys. The first splits of
/// all rows and heads come first.
struct DecodeAttentionSchedule {
  std::int32_t rows = 0;  // T
  std::int32_t kv_heads = 0;
  std::int32_t heads_per_kv = 0;
  std::int32_t head_dim = 0;
  std::int32_t num_splits = 1;
  std::int32_t num_blocks = 0;

  TW_HOST_DEVICE constexpr std::int32_t results() const { return rows * kv_heads; }
  TW_HOST_DEVICE constexpr std::int32_t num_works() const { return results() * num_splits; }
  TW_HOST_DEVICE constexpr std::uint32_t split_of(std::uint32_t work) const {
    return work / static_cast<std::uint32_t>(results());
  }
  TW_HOST_DEVICE constexpr std::uint32_t result_of(std::uint32_t work) const {
    return work - split_of(work) * static_cast<std::uint32_t>(results());
  }
  TW_HOST_DEVICE constexpr std::uint32_t row_of(std::uint32_t work) const {
    return result_of(work) / static_cast<std::uint32_t>(kv_heads);
  }
  TW_HOST_DEVICE constexpr std::uint32_t group_of(std::uint32_t work) const {
    return result_of(work) % static_cast<std::uint32_t>(kv_heads);
  }
  /// Heads of a row of qkv.
  TW_HOST_DEVICE constexpr std::int32_t all_heads() const { return kv_heads * (heads_per_kv + 2); }
  /// Head of qkv that is the group's key; its value is kv_heads further.
  TW_HOST_DEVICE constexpr std::int32_t key_head(std::int32_t group) const {
    return kv_heads * heads_per_kv + group;
  }
};

/// T: element type of pool and result; W: of the QK-norm weights, float, and null, without it.
template <class T, class W>
struct DecodeAttentionArgs {
  Produced<float> qkv;
  Stable<std::int32_t> positions, slots, sequence_of_row, page_table;
  Stable<float> inv_freq;
  Stable<T> k_past, v_past;
  Stable<W> q_norm, k_norm;
  Output<T> k_step, v_step, out;
  DecodeAttentionSchedule schedule;
  std::int32_t num_sequences, max_pages, page_size, pool_rows;
  float scale, attention_factor, eps;
  std::int32_t segments;  // of scratch, per row and kv head
  std::int32_t buffers;   // passes that shared memory holds
  float* partials;        // (row, kv head, segment), with splits only
};

/// "decode_attention.f32.bf16": element types of the pool and of the QK-norm weights (f32 without);
/// "decode_attention.bf16.bf16.d128" for a bf16 pool and a head_dim of 128.
std::string decode_attention_kernel_name(DType type, DType weight, std::int64_t head_dim);

}  // namespace tileweave

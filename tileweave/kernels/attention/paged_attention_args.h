// PagedAttentionArgs: the argument struct of every paged attention kernel, and how its works cut
// rows and heads.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/coord.h"
#include "tileweave/core/dtype.h"
#include "tileweave/kernels/attention/attention_shared.h"
#include "tileweave/plan/resources.h"
#include "tileweave/sync/access.h"

namespace tileweave {

/// Of the f32 form; that of bf16 needs what AttentionShared says.
inline constexpr KernelResources kPagedAttentionResources{.threads = kAttentionThreads,
                                                          .registers_per_thread = 128};

/// "paged_attention.f32", and "paged_attention.bf16.d128" for a head_dim of 128.
std::string paged_attention_kernel_name(DType type, std::int64_t head_dim);

/// Indices of the node's operands, and slots of the kernel's SyncContext.
struct PagedAttentionOperands {
  static constexpr int kQ = 0;
  static constexpr int kKStep = 1;
  static constexpr int kVStep = 2;
  static constexpr int kKPast = 3;
  static constexpr int kVPast = 4;
  static constexpr int kPositions = 5;
  static constexpr int kSlotsOfRows = 6;
  static constexpr int kSequenceOfRow = 7;
  static constexpr int kFirstRow = 8;
  static constexpr int kPast = 9;
  static constexpr int kPageTable = 10;
  static constexpr int kOut = 11;
  static constexpr int kCount = 12;

  static constexpr int kSlotQ = 0;
  static constexpr int kSlotKStep = 1;
  static constexpr int kSlotVStep = 2;
  static constexpr int kSlotOut = 3;
  static constexpr int kSlots = 4;
};

/// How works cut the rows and heads: work w is kernel tile {tile_of(w), group_of(w)} of the result,
/// and split split_of(w) of its keys. The first splits of all tiles come first.
struct PagedAttentionSchedule {
  std::int64_t rows = 0;      // T
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  //
  std::int64_t head_dim = 0;
  std::int64_t tile_m = 0;
  std::int64_t kv_heads_per_work = 1;
  std::int64_t num_splits = 1;
  std::int64_t num_blocks = 0;

  TW_HOST_DEVICE constexpr std::int64_t heads_per_kv() const { return heads / kv_heads; }
  TW_HOST_DEVICE constexpr std::int64_t groups() const { return kv_heads / kv_heads_per_work; }
  TW_HOST_DEVICE constexpr std::int64_t tiles() const { return ceil_div(rows, tile_m); }
  /// Kernel tiles of the result.
  TW_HOST_DEVICE constexpr std::int64_t results() const { return tiles() * groups(); }
  TW_HOST_DEVICE constexpr std::int64_t num_works() const { return results() * num_splits; }
  TW_HOST_DEVICE constexpr std::int64_t result_of(std::int64_t work) const {
    return num_splits == 1 ? work : work % results();
  }
  TW_HOST_DEVICE constexpr std::int64_t split_of(std::int64_t work) const {
    return num_splits == 1 ? 0 : work / results();
  }
  TW_HOST_DEVICE constexpr std::int64_t tile_of(std::int64_t work) const {
    return result_of(work) / groups();
  }
  TW_HOST_DEVICE constexpr std::int64_t group_of(std::int64_t work) const {
    return result_of(work) % groups();
  }
  TW_HOST_DEVICE constexpr std::int64_t first_row(std::int64_t tile) const { return tile * tile_m; }
  TW_HOST_DEVICE constexpr std::int64_t end_row(std::int64_t tile) const {
    return min64(rows, (tile + 1) * tile_m);
  }
  /// Columns of one group in q and out, and in keys and values.
  TW_HOST_DEVICE constexpr std::int64_t q_columns() const {
    return kv_heads_per_work * heads_per_kv() * head_dim;
  }
  TW_HOST_DEVICE constexpr std::int64_t kv_columns() const { return kv_heads_per_work * head_dim; }
};

/// T: element type of all that is no number.
template <class T>
struct PagedAttentionArgs {
  Produced<T> q, k_step, v_step;
  Stable<T> k_past, v_past;
  Stable<std::int32_t> positions, slots, sequence_of_row, first_row, past, page_table;
  Output<T> out;
  PagedAttentionSchedule schedule;
  std::int64_t num_sequences, max_pages, page_size;
  std::int64_t prefetch_bytes;
  float scale;
  float* partials;        // (row, kv head, segment), with splits only
  std::int64_t segments;  // per row and kv head
  std::int32_t num_works, results, groups, heads_per_kv;  // of the schedule, worked out once
};

}  // namespace tileweave

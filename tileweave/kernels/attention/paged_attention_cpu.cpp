// Paged attention on the emulated device. A work takes its rows sequence by sequence; for each, the
// keys chunk by chunk, gathered through the page table or from this step's rows, shared by all
// query heads of all its rows. This step's rows are waited for only when the first of them is
// needed.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tileweave/kernels/attention/paged_attention_chunk-inl.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tileweave/kernels/attention/paged_attention_chunk-inl.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "tileweave/kernels/attention/attention_chunk.h"
#include "tileweave/kernels/attention/decode_attention.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/kernels/attention/paged_attention_args.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

HWY_EXPORT(transpose_keys);
HWY_EXPORT(attend_chunk);

using Operands = PagedAttentionOperands;
using Args = PagedAttentionArgs<float>;
using Sync = SyncCta<AtomicsCpu, Operands::kSlots>;

constexpr std::int64_t kLineFloats = 16;  // floats per cache line

std::size_t elements(std::int64_t rows, std::int64_t cols) {
  return static_cast<std::size_t>(rows * cols);
}

void prefetch_floats(const float* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kLineFloats) __builtin_prefetch(from + i);
}

/// Rows [begin, end) of the step that belong to one sequence; -1: to none.
struct SequenceRows {
  std::int64_t sequence, begin, end;
};

/// One block: runs works of an attention in the shape of a CUDA kernel.
class AttentionBlock {
 public:
  AttentionBlock(const Args& args, Sync& sync, AccessChecker* checker)
      : args_(args),
        s_(args.schedule),
        sync_(sync),
        checker_(checker),
        kv_stride_(s_.kv_heads * s_.head_dim),
        padded_dim_(ceil_div(s_.head_dim, kAttentionUnit) * kAttentionUnit),
        k_past_(args.k_past.get(), kv_stride_, Operands::kKPast, checker),
        v_past_(args.v_past.get(), kv_stride_, Operands::kVPast, checker),
        q_(elements(s_.tile_m, s_.q_columns())),
        sums_(elements(s_.tile_m * s_.kv_heads_per_work * s_.heads_per_kv(), padded_dim_)),
        queries_(elements(s_.tile_m * s_.kv_heads_per_work, s_.heads_per_kv())),
        scores_(elements(kAttentionQueries, kAttentionChunk)),
        keys_(elements(s_.head_dim, kAttentionChunk)),
        padded_values_(padded_dim_ == s_.head_dim ? 0 : elements(kAttentionChunk, padded_dim_)),
        k_rows_(static_cast<std::size_t>(kAttentionChunk)),
        v_rows_(static_cast<std::size_t>(kAttentionChunk)),
        next_k_rows_(v_rows_.size()),
        next_v_rows_(v_rows_.size()) {}

  /// Constants, read once: in the prologue of the block's first work.
  void load_numbers() {
    positions_ = numbers(args_.positions, s_.rows, Operands::kPositions);
    slots_ = numbers(args_.slots, s_.rows, Operands::kSlotsOfRows);
    sequences_ = numbers(args_.sequence_of_row, s_.rows, Operands::kSequenceOfRow);
    first_rows_ = numbers(args_.first_row, args_.num_sequences, Operands::kFirstRow);
    past_ = numbers(args_.past, args_.num_sequences, Operands::kPast);
    const MatrixView<const std::int32_t> table(args_.page_table.get(), args_.max_pages,
                                               Operands::kPageTable, checker_);
    page_table_ = table.block(0, 0, args_.num_sequences, args_.max_pages);
  }

  /// Brings older keys and values near, ahead of the first wait.
  void prefetch(std::int64_t work) const {
    std::int64_t left = args_.prefetch_bytes;
    const std::int64_t tile = s_.tile_of(work);
    const std::int64_t col = s_.group_of(work) * s_.kv_columns();
    const std::int64_t row_bytes = 2 * s_.kv_columns() * static_cast<std::int64_t>(sizeof(float));
    for (std::int64_t i = s_.first_row(tile); i < s_.end_row(tile) && left >= row_bytes;) {
      const SequenceRows rows = sequence_at(i, tile);
      i = rows.end;
      if (rows.sequence < 0) continue;
      for (std::int64_t j = 0; j < past_[rows.sequence] && left >= row_bytes; ++j) {
        const std::int64_t row = pool_row(rows.sequence, j);
        prefetch_floats(k_past_.row(row, col, s_.kv_columns()), s_.kv_columns());
        prefetch_floats(v_past_.row(row, col, s_.kv_columns()), s_.kv_columns());
        left -= row_bytes;
      }
    }
  }

  /// False: the run is aborted.
  bool run(std::int64_t work) {
    tile_ = s_.tile_of(work);
    group_ = s_.group_of(work);
    step_tiles_ready_ = 0;
    ready_ = sync_.wait_input(Operands::kSlotQ, {tile_, group_});
    if (!ready_) return false;
    for (std::int64_t i = s_.first_row(tile_); i < s_.end_row(tile_);) {
      const SequenceRows rows = sequence_at(i, tile_);
      rows.sequence < 0 ? clear(rows) : void(ready_ = Ready(attend(rows)));
      if (!ready_) return false;
      i = rows.end;
    }
    // A work passes all its waits before it signals.
    if (!wait_for_step_tiles(tile_ + 1)) return false;
    sync_.signal_output(Operands::kSlotOut, {tile_, group_});
    return true;
  }

 private:
  const std::int32_t* numbers(const Stable<std::int32_t>& tensor, std::int64_t count,
                              int operand) const {
    return TensorView<const std::int32_t>(tensor.get(), {count}, operand, checker_).run({0}, count);
  }

  SequenceRows sequence_at(std::int64_t row, std::int64_t tile) const {
    const std::int64_t named = sequences_[row];
    std::int64_t end = row + 1;
    while (end < s_.end_row(tile) && sequences_[end] == named) ++end;
    return {named < args_.num_sequences ? named : -1, row, end};
  }

  std::int64_t pool_row(std::int64_t sequence, std::int64_t token) const {
    const std::int64_t page = page_table_[sequence * args_.max_pages + token / args_.page_size];
    return page * args_.page_size + token % args_.page_size;
  }

  bool wait_for_step_tiles(std::int64_t count) {
    for (; step_tiles_ready_ < count; ++step_tiles_ready_) {
      const Coord tile{step_tiles_ready_, group_};
      ready_ = sync_.wait_input(Operands::kSlotKStep, tile);
      if (!ready_) return false;
      ready_ = sync_.wait_input(Operands::kSlotVStep, tile);
      if (!ready_) return false;
    }
    return true;
  }

  MatrixView<float> out_view() const {
    return {args_.out.get(), s_.heads * s_.head_dim, Operands::kOut, checker_};
  }

  void clear(const SequenceRows& rows) const {
    const MatrixView<float> out = out_view();
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      std::fill_n(out.row(i, group_ * s_.q_columns(), s_.q_columns()), s_.q_columns(), 0.0F);
    }
  }

  bool attend(const SequenceRows& rows) {
    load_queries(rows);
    const std::int64_t keys = std::int64_t{positions_[rows.end - 1]} + 1;
    for (std::int64_t first = 0; first < keys; first += kAttentionChunk) {
      if (!attend_to_chunk(rows, first, std::min(first + kAttentionChunk, keys))) return false;
    }
    store(rows);
    return true;
  }

  /// Queries in the order [kv head][row][query head]: those that share keys lie together.
  std::int64_t query_index(const SequenceRows& rows, std::int64_t kv, std::int64_t row,
                           std::int64_t head) const {
    return (kv * (rows.end - rows.begin) + row - rows.begin) * s_.heads_per_kv() + head;
  }

  template <class Visit>
  void for_each_query(const SequenceRows& rows, const Visit& visit) {
    for (std::int64_t kv = 0; kv < s_.kv_heads_per_work; ++kv) {
      for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        for (std::int64_t h = 0; h < s_.heads_per_kv(); ++h) {
          const std::int64_t col =
              group_ * s_.q_columns() + (kv * s_.heads_per_kv() + h) * s_.head_dim;
          visit(query_index(rows, kv, i, h), i, col);
        }
      }
    }
  }

  void load_queries(const SequenceRows& rows) {
    const MatrixView<const float> q(args_.q.get(ready_), s_.heads * s_.head_dim, Operands::kQ,
                                    checker_);
    for_each_query(rows, [&](std::int64_t index, std::int64_t row, std::int64_t col) {
      const float* from = q.row(row, col, s_.head_dim);
      float* to = q_.data() + index * s_.head_dim;
      float* sums = sums_.data() + index * padded_dim_;
      for (std::int64_t d = 0; d < s_.head_dim; ++d) to[d] = from[d] * args_.scale;
      std::fill_n(sums, padded_dim_, 0.0F);
      queries_[static_cast<std::size_t>(index)] = {
          .q = to, .sums = sums, .highest = -std::numeric_limits<float>::infinity()};
    });
  }

  /// Keys [first, end) of the sequence for every row of it that sees any of them.
  bool attend_to_chunk(const SequenceRows& rows, std::int64_t first, std::int64_t end) {
    const std::int64_t past = past_[rows.sequence];
    const std::int64_t first_row = first_rows_[rows.sequence];
    if (end > past && !wait_for_step_tiles((first_row + end - 1 - past) / s_.tile_m + 1)) {
      return false;
    }
    std::int64_t seeing = rows.begin;  // rows are in position order
    while (positions_[seeing] < first) ++seeing;
    for (std::int64_t kv = 0; kv < s_.kv_heads_per_work; ++kv) {
      const std::int64_t col = group_ * s_.kv_columns() + kv * s_.head_dim;
      gather(rows.sequence, first, end, col);
      const bool last_head = kv + 1 == s_.kv_heads_per_work;
      find_next(rows.sequence, last_head ? end : first,
                last_head ? group_ * s_.kv_columns() : col + s_.head_dim);
      HWY_DYNAMIC_DISPATCH(transpose_keys)
      (k_rows_.data(), end - first, next_k_rows_.data(), s_.head_dim, keys_.data());
      const std::int64_t begin_query = query_index(rows, kv, seeing, 0);
      const std::int64_t end_query = query_index(rows, kv, rows.end, 0);
      for (std::int64_t i = seeing; i < rows.end; ++i) {
        for (std::int64_t h = 0; h < s_.heads_per_kv(); ++h) {
          queries_[static_cast<std::size_t>(query_index(rows, kv, i, h))].seen =
              std::min(end, std::int64_t{positions_[i]} + 1) - first;
        }
      }
      const AttentionChunk chunk{.keys = keys_.data(),
                                 .values = v_rows_.data(),
                                 .next_values = next_v_rows_.data(),
                                 .scores = scores_.data(),
                                 .head_dim = s_.head_dim,
                                 .padded_dim = padded_dim_};
      HWY_DYNAMIC_DISPATCH(attend_chunk)
      (chunk, queries_.data() + begin_query, end_query - begin_query);
    }
    return true;
  }

  /// Finds the rows of keys [first, end) and of their values.
  void gather(std::int64_t sequence, std::int64_t first, std::int64_t end, std::int64_t col) {
    const std::int64_t past = past_[sequence];
    const std::int64_t count = end - first;
    const auto k_row = [&](std::int64_t i) -> const float*& {
      return k_rows_[static_cast<std::size_t>(i)];
    };
    const auto v_row = [&](std::int64_t i) -> const float*& {
      return v_rows_[static_cast<std::size_t>(i)];
    };
    const std::int64_t in_pool = std::clamp(past - first, std::int64_t{0}, count);
    for (std::int64_t i = 0; i < in_pool; ++i) {
      const std::int64_t row = pool_row(sequence, first + i);
      k_row(i) = k_past_.row(row, col, s_.head_dim);
      v_row(i) = v_past_.row(row, col, s_.head_dim);
    }
    if (in_pool < count) {
      // Boxes of the step's rows are asked for by row and column; where a row lies, slots say.
      const MatrixView<const float> k(args_.k_step.get(ready_), 0, Operands::kKStep, checker_);
      const MatrixView<const float> v(args_.v_step.get(ready_), 0, Operands::kVStep, checker_);
      for (std::int64_t i = in_pool; i < count; ++i) {
        const std::int64_t row = first_rows_[sequence] + first + i - past;
        const std::int64_t offset = slots_[row] * kv_stride_;
        k_row(i) = k.row(row, col, s_.head_dim) + offset;
        v_row(i) = v.row(row, col, s_.head_dim) + offset;
      }
    }
    if (padded_values_.empty()) return;
    for (std::int64_t i = 0; i < count; ++i) {
      float* to = padded_values_.data() + i * padded_dim_;
      std::copy_n(v_row(i), s_.head_dim, to);
      v_row(i) = to;
    }
  }

  /// Rows to bring near while a chunk is computed: those of older keys from `first` on. Where there
  /// are none, a row that is near already.
  void find_next(std::int64_t sequence, std::int64_t first, std::int64_t col) {
    const std::int64_t count =
        std::clamp(past_[sequence] - first, std::int64_t{0}, kAttentionChunk);
    std::fill(next_k_rows_.begin() + count, next_k_rows_.end(), keys_.data());
    std::fill(next_v_rows_.begin() + count, next_v_rows_.end(), keys_.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = pool_row(sequence, first + i);
      next_k_rows_[static_cast<std::size_t>(i)] = k_past_.row(row, col, s_.head_dim);
      next_v_rows_[static_cast<std::size_t>(i)] = v_past_.row(row, col, s_.head_dim);
    }
  }

  void store(const SequenceRows& rows) {
    const MatrixView<float> out = out_view();
    for_each_query(rows, [&](std::int64_t index, std::int64_t row, std::int64_t col) {
      const AttentionQuery& query = queries_[static_cast<std::size_t>(index)];
      float* to = out.row(row, col, s_.head_dim);
      for (std::int64_t d = 0; d < s_.head_dim; ++d) to[d] = query.sums[d] / query.weight;
    });
  }

  const Args& args_;
  const PagedAttentionSchedule& s_;
  Sync& sync_;
  AccessChecker* checker_;
  std::int64_t kv_stride_;   // floats between rows of the pool
  std::int64_t padded_dim_;  // head_dim in whole units
  MatrixView<const float> k_past_, v_past_;
  const std::int32_t* positions_ = nullptr;
  const std::int32_t* slots_ = nullptr;
  const std::int32_t* sequences_ = nullptr;
  const std::int32_t* first_rows_ = nullptr;
  const std::int32_t* past_ = nullptr;
  const std::int32_t* page_table_ = nullptr;

  std::int64_t tile_ = 0;  // of the current work
  std::int64_t group_ = 0;
  std::int64_t step_tiles_ready_ = 0;
  Ready ready_ = Ready(false);

  std::vector<float> q_;     // (queries, head_dim), scaled
  std::vector<float> sums_;  // (queries, padded_dim)
  std::vector<AttentionQuery> queries_;
  std::vector<float> scores_;
  std::vector<float> keys_;           // (head_dim, kAttentionChunk)
  std::vector<float> padded_values_;  // (kAttentionChunk, padded_dim), where head_dim is no unit
  std::vector<const float*> k_rows_;  // of the current chunk
  std::vector<const float*> v_rows_;
  std::vector<const float*> next_k_rows_;  // to be brought near
  std::vector<const float*> next_v_rows_;
};

void paged_attention_cpu(CpuLane& lane, const std::byte* arg_bytes,
                         const std::byte* context_bytes) {
  const auto& args = *reinterpret_cast<const Args*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<Operands::kSlots>*>(context_bytes);
  Sync sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  AttentionBlock block(args, sync, lane.checker());
  const PagedAttentionSchedule& s = args.schedule;
  for (std::int64_t at = lane.block_index(); at < s.num_works(); at += s.num_blocks) {
    const std::int64_t work = sync.remap(at);
    if (at == lane.block_index()) block.load_numbers();
    block.prefetch(work);
    if (!block.run(work)) return;
  }
}

}  // namespace

void add_attention_cpu(KernelLibrary& kernels) {
  kernels.add({.name = paged_attention_kernel_name(DType::kF32, 0),
               .num_sync_slots = Operands::kSlots,
               .cpu = paged_attention_cpu});
  add_decode_attention_cpu(kernels);
}

}  // namespace tileweave

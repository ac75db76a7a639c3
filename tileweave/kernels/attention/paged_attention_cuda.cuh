// Paged attention on a GPU, sm_80 and later: decode and prefill rows alike, one row after the
// other.
//
// A work (row tile, kv head, split) fetches the older keys and values of its first row's first
// pass, waits, and runs its split's passes of every row. Where one work has all the keys of its
// rows it writes the result; else the last arriver merges. Works without keys of their rows return
// at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tileweave/kernels/attention/attention_result.cuh"
#include "tileweave/kernels/attention/paged_attention_args.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

template <int kDim>
class PagedAttentionBlock {
 public:
  using Operands = PagedAttentionOperands;
  using Args = PagedAttentionArgs<BFloat16>;
  using Sync = SyncCta<AtomicsCuda, Operands::kSlots>;
  using Row = AttentionRow<kDim, StepRows::kInPool>;
  using State = typename Row::State;
  static constexpr int kQuerySteps = (Row::kSteps + 1) / 2 * 2;

  __device__ PagedAttentionBlock(const Args& args, Sync& sync, std::byte* shared)
      : args_(args), sync_(sync), row_(shared, args.heads_per_kv, 1) {}

  /// False: the run is aborted.
  __device__ bool run(std::uint32_t work) {
    const auto results = static_cast<std::uint32_t>(args_.results);
    const auto groups = static_cast<std::uint32_t>(args_.groups);
    const std::uint32_t split = work / results;
    const std::uint32_t result = work - split * results;
    const std::uint32_t tile = result / groups;
    split_ = static_cast<int>(split);
    group_ = static_cast<int>(result - tile * groups);
    const auto first = static_cast<int>(args_.schedule.first_row(tile));
    const auto end = static_cast<int>(args_.schedule.end_row(tile));
    int passes = 0;
    TW_ROLLED_LOOP
    for (int t = first; t < end; ++t) {
      const int n = attention_passes(keys_of(t).keys);
      passes = n > passes ? n : passes;
    }
    splits_ = AttentionSplits::of(passes, static_cast<int>(args_.schedule.num_splits));
    if (split_ > 0 && splits_.empty(split_, passes)) {
      sync_.wait_for_grid_dependency();  // the kernel after this one relies on it
      return true;
    }
    const bool alone = splits_.end(0, passes) >= passes;
    SplitArrivals<Sync> arrivals(sync_, splits_.splits);
    Ready ready(false);
    for (int t = first; t < end; ++t) {
      __syncthreads();  // the row before, or the work, may still be read
      open(t);
      if (begin_ < end_) row_.prefetch(begin_, end_);
      if (t == first) {
        ready = sync_.wait_input(Operands::kSlotQ, {tile, group_});
        if (ready) ready = sync_.wait_input(Operands::kSlotKStep, {0, group_});
        if (ready) ready = sync_.wait_input(Operands::kSlotVStep, {0, group_});
        if (!ready) {
          ptx::wait_all_copies();
          return false;
        }
        arrivals.fetch_base(result);
      }
      attend(t, ready, alone);
    }
    if (alone) {
      arrivals.arrive_alone(result);
    } else {
      if (!arrivals.arrive(result, split_ > 0 ? 1 : 1 + splits_.num_idle(passes))) return true;
      for (int t = first; t < end; ++t) finish(t);
    }
    sync_.signal_output(Operands::kSlotOut, {tile, group_});
    return true;
  }

 private:
  /// No keys for a row without a sequence.
  __device__ AttentionKeys keys_of(int t) const {
    const std::int64_t sequence = args_.sequence_of_row.get()[t];
    if (sequence < 0 || sequence >= args_.num_sequences) return {};
    const std::int32_t position = args_.positions.get()[t];
    const auto most = static_cast<std::int32_t>(args_.max_pages * args_.page_size);
    return {.pages = args_.page_table.get() + sequence * args_.max_pages,
            .step_slots = args_.slots.get() + args_.first_row.get()[sequence],
            .page_size = static_cast<std::int32_t>(args_.page_size),
            .keys = position < most ? position + 1 : most,
            .past = args_.past.get()[sequence]};
  }

  __device__ void open(int t) {
    const AttentionKeys keys = keys_of(t);
    passes_ = attention_passes(keys.keys);
    begin_ = splits_.begin(split_, passes_);
    end_ = splits_.end(split_, passes_);
    row_.open({.k_past = column_of(args_.k_past.get()),
               .v_past = column_of(args_.v_past.get()),
               .stride = stride()},
              keys);
  }

  /// This split's passes of the row that is open.
  __device__ void attend(int t, const Ready& ready, bool alone) {
    State state;
    const AttentionPartials<kDim, Row> partials = partials_of(t);
    if (begin_ < end_) {
      const auto step_row = [this](const BFloat16* base) {
        return [from = column_of(base), stride = stride()](std::uint32_t to, int row, int unit) {
          ptx::copy_async_16(to, from + std::int64_t{row} * stride + unit * 16);
        };
      };
      const auto step_key = step_row(args_.k_step.get(ready));
      const auto step_value = step_row(args_.v_step.get(ready));
      row_.complete(begin_, step_key, step_value);
      std::uint32_t q[kQuerySteps][2];
      load_query(args_.q.get(ready) + query_offset(t), q);
      const auto query = [&](int step, std::uint32_t(&two)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) two[i] = q[step + i / 2][i % 2];
      };
      row_.run({begin_, end_}, query, args_.scale * kLog2E, step_key, step_value,
               [&](int pass, const State& part) {
                 if (split_ != 0) {
                   partials.store(row_, AttentionSegments::index(pass), part);
                 } else if (pass < kAttentionAlone) {
                   state = part;
                 } else {
                   merge(state, part);
                 }
               });
      if (split_ == 0 && !alone) partials.store(row_, 0, state);
    }
    if (!alone) return;
    BFloat16* const to = args_.out.get() + query_offset(t);
    passes_ == 0 ? store_zeros<kDim>(heads(), to) : store_result<kDim>(row_, heads(), state, to);
  }

  /// Merges what the splits left of row t.
  __device__ void finish(int t) {
    BFloat16* const to = args_.out.get() + query_offset(t);
    const int passes = attention_passes(keys_of(t).keys);
    if (passes == 0) {
      store_zeros<kDim>(heads(), to);
      return;
    }
    const int merged = splits_.end(0, passes);
    const int end = AttentionSegments::count(passes);
    const int first = merged < passes ? AttentionSegments::index(merged) : end;
    store_result<kDim>(row_, heads(), partials_of(t).merged(row_, first, end), to);
  }

  /// The row's heads as the tensor cores take them, zeros for those that do not exist.
  __device__ void load_query(const BFloat16* from, std::uint32_t (&q)[kQuerySteps][2]) const {
    const auto* words = reinterpret_cast<const std::uint32_t*>(from + row_.head() * kDim);
#pragma unroll
    for (int step = 0; step < kQuerySteps; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        q[step][half] = row_.head() < heads() && step < Row::kSteps
                            ? words[step * 8 + half * 4 + row_.lane() % 4]
                            : 0U;
      }
    }
  }

  __device__ std::int64_t query_offset(int t) const {
    return (std::int64_t{t} * args_.groups + group_) * heads() * kDim;
  }
  __device__ AttentionPartials<kDim, Row> partials_of(int t) const {
    return {args_.partials + (std::int64_t{t} * args_.groups + group_) * args_.segments *
                                 attention_partial_floats(heads(), kDim),
            heads()};
  }

  __device__ int heads() const {
    return args_.heads_per_kv;
  }
  /// Bytes between rows of the pool.
  __device__ int stride() const {
    return args_.groups * kDim * 2;
  }
  __device__ const char* column_of(const BFloat16* pool) const {
    return reinterpret_cast<const char*>(pool + group_ * kDim);
  }

  const Args& args_;
  Sync& sync_;
  Row row_;
  int group_ = 0, split_ = 0;
  AttentionSplits splits_{};
  int passes_ = 0, begin_ = 0, end_ = 0;  // of the row that is open; this split's
};

extern __shared__ __align__(16) std::byte attention_shared_memory[];

template <int kDim>
__global__ void __launch_bounds__(kAttentionThreads, 2) paged_attention_cuda(
    const __grid_constant__ PagedAttentionArgs<BFloat16> args,
    const __grid_constant__ SyncContext<PagedAttentionOperands::kSlots> context) {
  SyncCta<AtomicsCuda, PagedAttentionOperands::kSlots> sync(context);
  if (!sync.begin_cta()) return;
  PagedAttentionBlock<kDim> block(args, sync, attention_shared_memory);
  for (std::int64_t at = blockIdx.x; at < args.num_works; at += gridDim.x) {
    if (!block.run(static_cast<std::uint32_t>(sync.remap(at)))) return;
  }
}

}  // namespace tileweave

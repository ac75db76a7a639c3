// Decode attention on a GPU, sm_80 and later.
//
// A work (row, kv head, split) fetches the older keys and values of its first passes, angles and
// weights. Where it is to wait it first goes through the motions once, with nothing to read and
// nothing to write, up to its end: the instructions that the row of qkv will need are near when it
// arrives. Then warp h turns head h of the group (query heads, key, value), in shared memory all
// meet, and the passes follow as in paged attention; the row's own key and value stay in shared
// memory. Split 0 writes them to the pool. A work that has nobody to tell ends right behind its
// result, since the kernel after it waits for that end: an instruction that is fetched for the
// first time in a launch, by the few SMs that run this kernel, takes a microsecond while weights
// stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tileweave/kernels/attention/attention_result.cuh"
#include "tileweave/kernels/attention/decode_attention_args.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

/// What turning heads takes besides the heads, in shared memory, and a warp's part in it: lane l
/// has elements 2 l, 2 l + 1 and the same of the upper half.
template <int kDim>
class HeadTurner {
 public:
  static constexpr int kHalf = kDim / 2;

  struct Pairs {
    float2 low, high;
  };

  __device__ HeadTurner(std::byte* shared, float eps, bool normed)
      : cosines_(reinterpret_cast<float*>(shared)),
        lane_(static_cast<int>(threadIdx.x) % 32),
        eps_(eps),
        normed_(normed) {}

  /// What this thread prepares from.
  struct Constants {
    float inv_freq = 0.0F, q_norm = 0.0F, k_norm = 0.0F;
  };

  /// Starts reading what `prepare` needs.
  template <class W>
  __device__ Constants fetch(const float* inv_freq, const W* q_norm, const W* k_norm) const {
    const int i = static_cast<int>(threadIdx.x);
    Constants c;
    if (i < kHalf) c.inv_freq = inv_freq[i];
    if (normed_ && i < kDim) {
      c.q_norm = to_float(q_norm[i]);
      c.k_norm = to_float(k_norm[i]);
    }
    return c;
  }

  /// Before the wait. The block's threads must meet before they turn.
  __device__ void prepare(const Constants& c, int position, float factor) {
    const int i = static_cast<int>(threadIdx.x);
    if (normed_ && i < kDim) {
      cosines_[kDim + i] = c.q_norm;
      cosines_[2 * kDim + i] = c.k_norm;
    }
    if (i >= kHalf) return;
    float sine, cosine;
    sincosf(__fmul_rn(static_cast<float>(position), c.inv_freq), &sine, &cosine);
    cosines_[i] = cosine * factor;
    cosines_[kHalf + i] = sine * factor;
  }

  __device__ bool holds() const { return 2 * lane_ < kHalf; }

  __device__ Pairs load(const float* head) const {
    if (!holds()) return {};
    return {*reinterpret_cast<const float2*>(head + 2 * lane_),
            *reinterpret_cast<const float2*>(head + kHalf + 2 * lane_)};
  }

  __device__ Pairs turned(Pairs x, bool is_key) const {
    const float2 cosine = table(0), sine = table(kHalf);
    if (normed_) {
      const int weights = is_key ? 2 * kDim : kDim;
      const float2 low = table(weights), high = table(weights + kHalf);
      float squares = x.low.x * x.low.x;
      squares = fmaf(x.low.y, x.low.y, squares);
      squares = fmaf(x.high.x, x.high.x, squares);
      squares = fmaf(x.high.y, x.high.y, squares);
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        squares += __shfl_xor_sync(kAllLanes, squares, distance);
      }
      const float scale = rsqrtf(squares / static_cast<float>(kDim) + eps_);
      x = {{x.low.x * scale * low.x, x.low.y * scale * low.y},
           {x.high.x * scale * high.x, x.high.y * scale * high.y}};
    }
    return {
        {fmaf(-x.high.x, sine.x, x.low.x * cosine.x), fmaf(-x.high.y, sine.y, x.low.y * cosine.y)},
        {fmaf(x.low.x, sine.x, x.high.x * cosine.x), fmaf(x.low.y, sine.y, x.high.y * cosine.y)}};
  }

  /// The head, rounded, to `to`: shared or global memory.
  __device__ void store(const Pairs& x, void* to) const {
    if (!holds()) return;
    auto* words = static_cast<std::uint32_t*>(to);
    words[lane_] = ptx::pack_bf16(x.low.x, x.low.y);
    words[kHalf / 2 + lane_] = ptx::pack_bf16(x.high.x, x.high.y);
  }

 private:
  /// This lane's two of the numbers from `first` on; another lane's for a lane without.
  __device__ float2 table(int first) const {
    return *reinterpret_cast<const float2*>(cosines_ + first + 2 * min(lane_, kHalf / 2 - 1));
  }

  float* cosines_;  // then sines, norm weights of queries, norm weights of keys
  int lane_;
  float eps_;
  bool normed_;
};

template <int kDim, class W>
class DecodeAttentionBlock {
 public:
  using Operands = DecodeAttentionOperands;
  using Args = DecodeAttentionArgs<BFloat16, W>;
  using Sync = SyncCta<AtomicsCuda, Operands::kSlots>;
  using Row = AttentionRow<kDim, StepRows::kOwnInShared>;
  using State = typename Row::State;
  static constexpr AttentionShared kShared{kDim};

  __device__ DecodeAttentionBlock(const Args& args, Sync& sync, std::byte* shared)
      : args_(args),
        sync_(sync),
        shared_(shared),
        row_(shared, args.schedule.heads_per_kv, args.buffers) {}

  /// False: the run is aborted. `rehearses`: as at the top of this file; `is_last`: of the block.
  __device__ bool run(std::uint32_t work, bool rehearses, bool is_last) {
    const DecodeAttentionSchedule& s = args_.schedule;
    const std::uint32_t result = s.result_of(work);
    split_ = static_cast<int>(s.split_of(work));
    t_ = static_cast<int>(s.row_of(work));
    group_ = static_cast<int>(s.group_of(work));
    HeadTurner<kDim> turner(shared_ + kShared.turning(), args_.eps, args_.q_norm.get() != nullptr);
    const auto constants =
        turner.fetch(args_.inv_freq.get(), args_.q_norm.get(), args_.k_norm.get());
    const AttentionKeys keys = keys_of_row();
    const int passes = attention_passes(keys.keys);
    const AttentionSplits splits = AttentionSplits::of(passes, s.num_splits);
    const int begin = splits.begin(split_, passes), end = splits.end(split_, passes);
    if (split_ > 0 && begin >= end) {
      sync_.wait_for_grid_dependency();  // the kernel after this one relies on it
      return true;
    }
    const bool alone = splits.end(0, passes) >= passes;
    row_.open({.k_past = column_of(args_.k_past.get()),
               .v_past = column_of(args_.v_past.get()),
               .stride = s.kv_heads * kDim * 2},
              keys);
    if (begin < end) row_.prefetch(begin, end);
    turner.prepare(constants, keys.past, args_.attention_factor);
    const TurnedHeads heads_here(*this, split_ == 0 || end == passes);
    const bool fits = row_.fits(begin, end);
    const bool ends_behind_result = is_last && is_silent();
    __syncthreads();

    SplitArrivals<Sync> arrivals(sync_, s.num_splits);
    // Rolled: both must run the same instructions.
    TW_ROLLED_LOOP
    for (bool rehearsal = rehearses && begin < end;; rehearsal = false) {
      const float* qkv = nullptr;
      if (!rehearsal) {
        const Ready ready = sync_.wait_input(Operands::kSlotQkv, {t_});
        if (!ready) {
          ptx::wait_all_copies();
          return false;
        }
        qkv = args_.qkv.get(ready);
        alone ? arrivals.arrive_alone(result) : arrivals.fetch_base(result);
      }
      State state;
      if (begin < end) {
        turn_heads(turner, heads_here, qkv);
        attend({begin, rehearsal ? begin + 1 : end, rehearsal}, fits, alone, state);
      }
      bool last = alone;
      if (alone) {
        store(rehearsal ? 0 : heads(), passes, state);
        if (begin < end) write_own(rehearsal);
      } else {
        // Whoever signals the result has learnt of every arrival: the pool comes before this one.
        if (split_ == 0) write_own(rehearsal);
        last = merge_splits(arrivals, result, passes, rehearsal);
      }
      if (!rehearsal && ends_behind_result) ptx::end_thread();
      if (rehearsal) continue;
      signal(last);
      return true;
    }
  }

 private:
  /// Nobody waits for a tile of a result, and nothing is traced: there is nothing to signal.
  __device__ bool is_silent() const {
    const auto& context = sync_.context();
    return context.header.records == nullptr &&
           context.operands[Operands::kSlotOut].words == nullptr &&
           context.operands[Operands::kSlotKStep].words == nullptr &&
           context.operands[Operands::kSlotVStep].words == nullptr;
  }

  /// One key beyond the older ones: the row's own. No keys for padding.
  __device__ AttentionKeys keys_of_row() {
    const std::int32_t sequence = args_.sequence_of_row.get()[t_];
    const std::int32_t position = args_.positions.get()[t_];
    slot_ = args_.slots.get()[t_];
    if (sequence < 0 || sequence >= args_.num_sequences || slot_ < 0 || slot_ >= args_.pool_rows ||
        position < 0 || position >= args_.max_pages * args_.page_size) {
      return {};
    }
    return {.pages = args_.page_table.get() + std::int64_t{sequence} * args_.max_pages,
            .page_size = args_.page_size,
            .keys = position + 1,
            .past = position};
  }

  /// Which heads this warp turns; what can be known before the wait.
  struct TurnedHeads {
    int count;           // of the block
    std::int64_t first;  // element of qkv where this warp's first begins

    __device__ TurnedHeads(const DecodeAttentionBlock& block, bool with_own)
        : count(block.heads() + (with_own ? 2 : 0)), first(block.head_of_qkv(block.row_.warp())) {
      ptx::keep(first);
    }
  };

  /// Element of qkv where head `h` of the group begins: query heads, key, value.
  __device__ std::int64_t head_of_qkv(int h) const {
    const DecodeAttentionSchedule& s = args_.schedule;
    const int head =
        h < heads() ? group_ * heads() + h : s.key_head(group_) + (h == heads() ? 0 : s.kv_heads);
    return (std::int64_t{t_} * s.all_heads() + head) * kDim;
  }

  /// Queries, and where it is wanted the row's own key and value, to shared memory. Without qkv: a
  /// rehearsal.
  __device__ void turn_heads(const HeadTurner<kDim>& turner, const TurnedHeads& here,
                             const float* qkv) {
    int h = row_.warp();
    std::int64_t from = here.first;
    while (h < here.count) {
      typename HeadTurner<kDim>::Pairs x = {};
      if (qkv != nullptr) x = turner.load(qkv + from);
      const bool is_value = h > heads();
      if (!is_value) x = turner.turned(x, h == heads());
      // Queries lie one behind the other, own key and own value follow them all.
      const int row = h < heads() ? h : kAttentionMaxHeads + (is_value ? 1 : 0);
      turner.store(x, shared_ + kShared.queries() + row * kShared.pitch());
      h += kAttentionSlices;
      if (h < here.count) from = head_of_qkv(h);
    }
    __syncthreads();
  }

  /// The row's own key and value to the pool.
  __device__ void write_own(bool rehearsal) const {
    constexpr int kUnits = kDim / 8;  // of 16 bytes per row
    if (row_.warp() != kAttentionSlices - 1 || row_.lane() >= 2 * kUnits) return;
    const bool is_value = row_.lane() >= kUnits;
    const int unit = row_.lane() % kUnits;
    const auto* const from = reinterpret_cast<const uint4*>(
        shared_ + (is_value ? kShared.own_value() : kShared.own_key()));
    BFloat16* const pool = is_value ? args_.v_step.get() : args_.k_step.get();
    auto* const to = reinterpret_cast<uint4*>(
        pool + (std::int64_t{slot_} * args_.schedule.kv_heads + group_) * kDim);
    const uint4 own = from[unit];
    if (!rehearsal) to[unit] = own;
  }

  __device__ void attend(const AttentionSpan& span, bool fits, bool alone, State& state) {
    // Whatever lies where heads that do not exist would be stays in rows of the scores that nobody
    // looks at.
    const std::uint32_t from = ptx::shared_address(shared_) + kShared.queries() +
                               row_.lane() % 8 * kShared.pitch() + row_.lane() / 8 * 16;
    const auto query = [from](int step, std::uint32_t(&two)[4]) {
      ptx::load_matrices(two, from + step * 32);  // the second may be beyond the last
    };
    const int segment = split_ == 0 ? 0 : AttentionSegments::index(span.first);
    if (fits) {
      state = row_.fitting(span, query, args_.scale * kLog2E);
      if (!alone && !span.rehearsal) partials().store(row_, segment, state);
      return;
    }
    // Split 0 merges its segments into one.
    row_.run(span, query, args_.scale * kLog2E, NoStepRows{}, NoStepRows{},
             [&](int pass, const State& part) {
               if (split_ != 0) {
                 if (!span.rehearsal) {
                   partials().store(row_, AttentionSegments::index(pass), part);
                 }
               } else if (pass < kAttentionAlone) {
                 state = part;
               } else {
                 merge(state, part);
               }
             });
    if (split_ == 0 && !alone && !span.rehearsal) partials().store(row_, 0, state);
  }

  /// The row's first `heads` heads of this kv head.
  __device__ void store(int heads, int passes, const State& state) {
    BFloat16* const to = args_.out.get() + (std::int64_t{t_} * args_.schedule.kv_heads + group_) *
                                               this->heads() * kDim;
    passes == 0 ? store_zeros<kDim>(heads, to) : store_result<kDim>(row_, heads, state, to);
  }

  /// Arrives; the last to do so merges what the splits left. True for the last.
  __device__ bool merge_splits(SplitArrivals<Sync>& arrivals, std::int64_t result, int passes,
                               bool rehearsal) {
    const AttentionSplits splits = AttentionSplits::of(passes, args_.schedule.num_splits);
    const int arriving = rehearsal ? 0 : split_ > 0 ? 1 : 1 + splits.num_idle(passes);
    if (!arrivals.arrive(result, arriving)) return false;
    const int merged = AttentionSegments::index(splits.end(0, passes));
    store(rehearsal ? 0 : heads(), passes,
          partials().merged(row_, merged, rehearsal ? 0 : AttentionSegments::count(passes)));
    return true;
  }

  /// `out`: all of the row's heads of this kv head are stored.
  __device__ void signal(bool out) {
    if (out) sync_.signal_output(Operands::kSlotOut, {t_, group_});
    if (split_ == 0) {
      sync_.signal_output(Operands::kSlotKStep, {t_, group_});
      sync_.signal_output(Operands::kSlotVStep, {t_, group_});
    }
  }

  __device__ AttentionPartials<kDim, Row> partials() const {
    return {args_.partials + (std::int64_t{t_} * args_.schedule.kv_heads + group_) *
                                 args_.segments * attention_partial_floats(heads(), kDim),
            heads()};
  }
  __device__ int heads() const { return args_.schedule.heads_per_kv; }
  __device__ const char* column_of(const BFloat16* pool) const {
    return reinterpret_cast<const char*>(pool + group_ * kDim);
  }

  const Args& args_;
  Sync& sync_;
  std::byte* shared_;
  Row row_;
  int t_ = 0, group_ = 0, split_ = 0;
  std::int32_t slot_ = -1;
};

extern __shared__ __align__(16) std::byte attention_shared_memory[];

template <int kDim, class W>
__global__ void __launch_bounds__(kAttentionThreads, 2) decode_attention_cuda(
    const __grid_constant__ DecodeAttentionArgs<BFloat16, W> args,
    const __grid_constant__ SyncContext<DecodeAttentionOperands::kSlots> context) {
  SyncCta<AtomicsCuda, DecodeAttentionOperands::kSlots> sync(context);
  if (!sync.begin_cta()) return;
  DecodeAttentionBlock<kDim, W> block(args, sync, attention_shared_memory);
  constexpr std::uint32_t kMayWait = SyncHeader::kProgrammaticConsumer | SyncHeader::kWaits;
  bool first = true;
  for (auto at = static_cast<std::int32_t>(blockIdx.x); at < args.schedule.num_works();
       at += static_cast<std::int32_t>(gridDim.x)) {
    if (!first) __syncthreads();  // shared memory may still be read
    const bool rehearses = first && (context.header.flags & kMayWait) != 0;
    const bool is_last = at + static_cast<std::int32_t>(gridDim.x) >= args.schedule.num_works();
    if (!block.run(static_cast<std::uint32_t>(sync.remap(at)), rehearses, is_last)) return;
    first = false;
  }
}

}  // namespace tileweave

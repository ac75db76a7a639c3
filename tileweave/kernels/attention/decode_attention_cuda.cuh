// Decode attention on a GPU, sm_80 and later.
//
// A work (row, kv head, split) fetches the older keys and values of its first passes, angles and
// weights. Where it is to wait it first goes through the motions once, with nothing to read and
// nothing to write: the instructions that the row of qkv will need are near when it arrives. Then
// warp h turns head h of the group (query heads, key, value), in shared memory all meet, and the
// passes follow as in paged attention; the row's own key and value stay in shared memory. Split 0
// writes them to the pool.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tileweave/kernels/attention/attention_result.cuh"
#include "tileweave/kernels/attention/decode_attention_args.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

/// A warp's share of turning heads: lane l has elements 2 l, 2 l + 1 and the same of the upper
/// half. Every lane's loads are of constants, except those of the head itself.
template <int kDim, class W>
class HeadTurner {
 public:
  static constexpr int kHalf = kDim / 2;

  struct Pairs {
    float2 low, high;
  };

  __device__ bool holds() const { return 2 * lane() < kHalf; }

  /// Before the wait.
  __device__ void prepare(const float* inv_freq, const W* q_norm, const W* k_norm, int position,
                          float factor, float eps) {
    eps_ = eps;
    normed_ = q_norm != nullptr;
    if (!holds()) return;
    const float2 frequency = *reinterpret_cast<const float2*>(inv_freq + 2 * lane());
    if (normed_) {
      q_weight_ = weights(q_norm);
      k_weight_ = weights(k_norm);
    }
    TW_ROLLED_LOOP
    for (int i = 0; i < 2; ++i) {
      float sine, cosine;
      sincosf(__fmul_rn(static_cast<float>(position), i == 0 ? frequency.x : frequency.y), &sine,
              &cosine);
      (i == 0 ? sine_.x : sine_.y) = sine * factor;
      (i == 0 ? cosine_.x : cosine_.y) = cosine * factor;
    }
  }

  __device__ Pairs load(const float* head) const {
    if (!holds()) return {};
    return {*reinterpret_cast<const float2*>(head + 2 * lane()),
            *reinterpret_cast<const float2*>(head + kHalf + 2 * lane())};
  }

  __device__ Pairs turned(Pairs x, bool is_key) const {
    if (normed_) {
      float squares = x.low.x * x.low.x;
      squares = fmaf(x.low.y, x.low.y, squares);
      squares = fmaf(x.high.x, x.high.x, squares);
      squares = fmaf(x.high.y, x.high.y, squares);
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        squares += __shfl_xor_sync(kAllLanes, squares, distance);
      }
      const float scale = rsqrtf(squares / static_cast<float>(kDim) + eps_);
      const Pairs w = is_key ? k_weight_ : q_weight_;
      x = {{x.low.x * scale * w.low.x, x.low.y * scale * w.low.y},
           {x.high.x * scale * w.high.x, x.high.y * scale * w.high.y}};
    }
    return {{fmaf(-x.high.x, sine_.x, x.low.x * cosine_.x),
             fmaf(-x.high.y, sine_.y, x.low.y * cosine_.y)},
            {fmaf(x.low.x, sine_.x, x.high.x * cosine_.x),
             fmaf(x.low.y, sine_.y, x.high.y * cosine_.y)}};
  }

  /// The head, rounded, to `to`: shared or global memory.
  __device__ void store(const Pairs& x, void* to) const {
    if (!holds()) return;
    auto* words = static_cast<std::uint32_t*>(to);
    words[lane()] = ptx::pack_bf16(x.low.x, x.low.y);
    words[kHalf / 2 + lane()] = ptx::pack_bf16(x.high.x, x.high.y);
  }

 private:
  __device__ static int lane() {
    return static_cast<int>(threadIdx.x) % 32;
  }
  __device__ static Pairs weights(const W* norm) {
    return {{to_float(norm[2 * lane()]), to_float(norm[2 * lane() + 1])},
            {to_float(norm[kHalf + 2 * lane()]), to_float(norm[kHalf + 2 * lane() + 1])}};
  }

  float2 cosine_{}, sine_{};
  Pairs q_weight_{}, k_weight_{};
  float eps_ = 0;
  bool normed_ = false;
};

template <int kDim, class W>
class DecodeAttentionBlock {
 public:
  using Operands = DecodeAttentionOperands;
  using Args = DecodeAttentionArgs<BFloat16, W>;
  using Sync = SyncCta<AtomicsCuda, Operands::kSlots>;
  using Row = AttentionRow<kDim>;
  using State = typename Row::State;
  static constexpr AttentionShared kShared{kDim};

  __device__ DecodeAttentionBlock(const Args& args, Sync& sync, std::byte* shared)
      : args_(args), sync_(sync), shared_(shared), row_(shared, args.buffers) {}

  /// False: the run is aborted. `rehearses`: as at the top of this file.
  __device__ bool run(std::uint32_t work, bool rehearses) {
    const DecodeAttentionSchedule& s = args_.schedule;
    const std::uint32_t result = s.result_of(work);
    split_ = static_cast<int>(s.split_of(work));
    t_ = static_cast<int>(s.row_of(work));
    group_ = static_cast<int>(s.group_of(work));
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
    HeadTurner<kDim, W> turner;
    turner.prepare(args_.inv_freq.get(), args_.q_norm.get(), args_.k_norm.get(), keys.past,
                   args_.attention_factor, args_.eps);

    SplitArrivals<Sync> arrivals(sync_, result, s.num_splits);
    Ready ready(false);
    // Rolled: both must run the same instructions.
    TW_ROLLED_LOOP
    for (bool rehearsal = rehearses && begin < end;; rehearsal = false) {
      if (!rehearsal) {
        ready = sync_.wait_input(Operands::kSlotQkv, {t_});
        if (!ready) {
          ptx::wait_all_copies();
          return false;
        }
        arrivals.fetch_base(result);
      }
      State state;
      if (begin < end) {
        turn_heads(turner, rehearsal ? nullptr : args_.qkv.get(ready),
                   split_ == 0 || end == passes);
        attend({begin, rehearsal ? begin + 1 : end, rehearsal}, alone, state);
      }
      if (alone) store(rehearsal ? 0 : heads(), passes, state);
      if (!rehearsal) break;
    }
    finish(arrivals, splits, passes, alone);
    return true;
  }

 private:
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

  /// Queries, and where it is wanted the row's own key and value, to shared memory; split 0 also
  /// writes these to the pool. Without qkv: a rehearsal.
  __device__ void turn_heads(const HeadTurner<kDim, W>& turner, const float* qkv, bool with_own) {
    const DecodeAttentionSchedule& s = args_.schedule;
    const float* const row = qkv + std::int64_t{t_} * s.all_heads() * kDim;
    const int heads = s.heads_per_kv;
    const int count = with_own ? heads + 2 : heads;
    // Up to ten heads for eight warps: both loads of a warp are under way at once.
    typename HeadTurner<kDim, W>::Pairs x[2] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int h = row_.warp() + i * kAttentionSlices;
      const int from =
          h < heads ? group_ * heads + h : s.key_head(group_) + (h == heads ? 0 : s.kv_heads);
      if (h < count && qkv != nullptr) x[i] = turner.load(row + from * kDim);
    }
    TW_ROLLED_LOOP
    for (int i = 0; i < 2; ++i) {
      const int h = row_.warp() + i * kAttentionSlices;
      if (h >= count) break;
      const auto head = i == 0 ? x[0] : x[1];
      const bool is_value = h == heads + 1;
      const auto turned = is_value ? head : turner.turned(head, h == heads);
      turner.store(turned, shared_ + (h < heads  ? kShared.queries() + h * kShared.pitch()
                                      : is_value ? kShared.own_value()
                                                 : kShared.own_key()));
      if (h >= heads && split_ == 0 && qkv != nullptr) {
        BFloat16* const pool = is_value ? args_.v_step.get() : args_.k_step.get();
        turner.store(turned, pool + (std::int64_t{slot_} * s.kv_heads + group_) * kDim);
      }
    }
    __syncthreads();
  }

  __device__ void attend(const AttentionSpan& span, bool alone, State& state) {
    std::uint32_t q[Row::kSteps][2];
    load_query(q);
    const AttentionPartials<kDim> partials = this->partials();
    row_.run(span, q, args_.scale * kLog2E, NoStepRows{}, NoStepRows{},
             [&](int segment, const State& part) {
               if (split_ == 0) {
                 merge(state, part);
               } else if (!span.rehearsal) {
                 partials.store(row_, segment, part);
               }
             });
    if (split_ == 0 && !alone && !span.rehearsal) partials.store(row_, 0, state);
  }

  /// The row's first `heads` heads of this kv head.
  __device__ void store(int heads, int passes, const State& state) {
    BFloat16* const to = args_.out.get() + (std::int64_t{t_} * args_.schedule.kv_heads + group_) *
                                               this->heads() * kDim;
    passes == 0 ? store_zeros<kDim>(heads, to) : store_result(row_, heads, state, to);
  }

  /// Arrives; the last to do so merges what the splits left, and signals the result.
  __device__ void finish(SplitArrivals<Sync>& arrivals, const AttentionSplits& splits, int passes,
                         bool alone) {
    bool last = alone;
    if (alone) {
      arrivals.arrive_alone();
    } else {
      last = arrivals.arrive(split_ > 0 ? 1 : 1 + splits.num_idle(passes));
      if (last) {
        const int merged = splits.end(0, passes);
        store(heads(), passes,
              partials().merged(row_, AttentionSegments::index(merged),
                                AttentionSegments::count(passes)));
      }
    }
    if (last) sync_.signal_output(Operands::kSlotOut, {t_, group_});
    if (split_ == 0) {
      sync_.signal_output(Operands::kSlotKStep, {t_, group_});
      sync_.signal_output(Operands::kSlotVStep, {t_, group_});
    }
  }

  /// The heads as the tensor cores take them. Whatever lies where those that do not exist would
  /// be stays in rows of the scores that nobody looks at.
  __device__ void load_query(std::uint32_t (&q)[Row::kSteps][2]) const {
    const std::uint32_t from = ptx::shared_address(shared_) + kShared.queries() +
                               row_.lane() % 8 * kShared.pitch() + row_.lane() / 8 * 16;
#pragma unroll
    for (int step = 0; step < Row::kSteps; step += 2) {
      std::uint32_t two[4];  // steps; the second may be beyond the last
      ptx::load_matrices(two, from + step * 32);
#pragma unroll
      for (int i = 0; i < 4 && step + i / 2 < Row::kSteps; ++i) q[step + i / 2][i % 2] = two[i];
    }
  }

  __device__ AttentionPartials<kDim> partials() const {
    return {args_.partials + (std::int64_t{t_} * args_.schedule.kv_heads + group_) *
                                 args_.segments * attention_partial_floats(heads(), kDim),
            heads()};
  }
  __device__ int heads() const {
    return args_.schedule.heads_per_kv;
  }
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
    if (!block.run(static_cast<std::uint32_t>(sync.remap(at)), rehearses)) return;
    first = false;
  }
}

}  // namespace tileweave

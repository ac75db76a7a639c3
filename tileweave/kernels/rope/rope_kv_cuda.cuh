// rope_kv on a GPU: half a warp per head, so a block turns 16 heads at a time.
//
// Any architecture from sm_80, any head_dim. Lane l of a half warp holds the pairs 4 l + 64 c + [0,
// 4) of a head. Heads of up to 128 elements stay in registers, four per half warp at once; what
// constants decide (cosines and sines of a row, its slot, the norm weights) is there before the
// first wait. Longer heads, and those that are not aligned to 16 bytes, are read twice and turned
// pair by pair. The fused QK-norm adds up squares in the order of norm/qk_norm_cuda.cuh. Few rows
// spread their heads over the half warps: with tile_m = 1 a row has all 16 of them.
#pragma once

#include <cstdint>

#include "tileweave/core/packed_elements.cuh"
#include "tileweave/kernels/rope/rope_kv_args.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

struct RopeHeads {
  static constexpr int kThreads = 256;
  static constexpr int kLanes = 16;
  static constexpr int kAtOnce = kThreads / kLanes;  // heads of a block
  static constexpr int kBatch = 4;                   // heads in the registers of a half warp
  static constexpr int kWidth = 4;                   // pairs of a lane

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static int half_warp() { return static_cast<int>(threadIdx.x) / kLanes; }

  /// Whether heads of `dim` elements in rows at these addresses fit the registers.
  template <class... T>
  __device__ static bool fits(std::int64_t dim, const T*... rows) {
    return dim <= 2 * kLanes * kWidth && dim % (2 * kWidth) == 0 && (... && is_aligned(rows));
  }

  __device__ static float inverse(std::int64_t dim) { return __frcp_rn(static_cast<float>(dim)); }

  /// 1 / sqrt(mean + eps) of the head whose squares the half warp's lanes have added up. All lanes
  /// of the warp call it.
  __device__ __forceinline__ static float scale_of(float squares, float inverse_dim, float eps) {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      squares += __shfl_xor_sync(0xffffffffU, squares, distance);
    }
    return rsqrtf(fmaf(squares, inverse_dim, eps));
  }

  /// Turns the pair (a, b).
  __device__ __forceinline__ static void turn(float& a, float& b, float cosine, float sine) {
    const float turned = fmaf(-b, sine, __fmul_rn(a, cosine));
    b = fmaf(a, sine, __fmul_rn(b, cosine));
    a = turned;
  }
};

static_assert(kRopeKvResources.threads == RopeHeads::kThreads);

enum class RopeHead : std::uint8_t { kQuery, kKey, kValue };

/// Rows and heads of one work, and how they are dealt to the half warps of the block. Heads of a
/// work are numbered queries first, then keys, then values. Numbers of heads are small: 32 bits.
struct RopeWork {
  std::int64_t first_row;
  int m, g;
  int heads, all_kv_heads;  // of a row of qkv
  int rows, queries, kv_heads, first_query, first_kv;
  int rows_at_once, heads_at_once;

  __device__ RopeWork(const RopeKvSchedule& s, std::int64_t work) {
    const auto groups_of = static_cast<unsigned>(s.tile_kv_heads);
    heads = static_cast<int>(s.heads);
    all_kv_heads = static_cast<int>(s.kv_heads);
    const unsigned groups = (static_cast<unsigned>(all_kv_heads) + groups_of - 1) / groups_of;
    m = static_cast<int>(static_cast<unsigned>(work) / groups);
    g = static_cast<int>(static_cast<unsigned>(work) % groups);
    first_row = m * s.tile_m;
    first_kv = g * static_cast<int>(s.tile_kv_heads);
    rows = static_cast<int>(min64(s.tile_m, s.rows - first_row));
    kv_heads = min(static_cast<int>(s.tile_kv_heads), all_kv_heads - first_kv);
    const int queries_per_kv = heads / all_kv_heads;
    queries = kv_heads * queries_per_kv;
    first_query = first_kv * queries_per_kv;
    rows_at_once = min(RopeHeads::kAtOnce, rows);
    heads_at_once = RopeHeads::kAtOnce / rows_at_once;
  }

  __device__ int count() const { return queries + 2 * kv_heads; }
  __device__ int row_of_half_warp() const { return RopeHeads::half_warp() / heads_at_once; }
  __device__ int head_of_half_warp() const { return RopeHeads::half_warp() % heads_at_once; }

  __device__ RopeHead kind(int head) const {
    if (head < queries) return RopeHead::kQuery;
    return head < queries + kv_heads ? RopeHead::kKey : RopeHead::kValue;
  }
  /// Which of the heads of its kind in a whole row: where it goes.
  __device__ int index(int head) const {
    if (head < queries) return first_query + head;
    head -= queries;
    return first_kv + (head < kv_heads ? head : head - kv_heads);
  }
  /// Which of all heads of a row of qkv: where it comes from.
  __device__ int column(int head) const {
    int before = 0;
    if (head >= queries) before += heads;
    if (head >= queries + kv_heads) before += all_kv_heads;
    return before + index(head);
  }
};

/// Where the heads of one row lie in qkv, and where they go.
template <class W>
struct RopeRow {
  std::int64_t from = 0, to_q = 0, to_pool = -1;  // first elements; -1: a padding row

  __device__ RopeRow() = default;
  __device__ RopeRow(const RopeKvArgs<W, BFloat16>& args, std::int64_t row) {
    const RopeKvSchedule& s = args.schedule;
    from = row * s.all_heads() * s.head_dim;
    to_q = row * s.heads * s.head_dim;
    const std::int64_t slot = args.slots.get()[row];
    if (slot >= 0 && slot < args.pool_rows) to_pool = slot * s.kv_heads * s.head_dim;
  }

  __device__ bool is_padding() const { return to_pool < 0; }

  /// Null: nowhere, a key or value of a padding row.
  __device__ BFloat16* to(const RopeKvArgs<W, BFloat16>& args, const RopeWork& work,
                          int head) const {
    const std::int64_t at = work.index(head) * args.schedule.head_dim;
    const RopeHead kind = work.kind(head);
    if (kind == RopeHead::kQuery) return args.q.get() + to_q + at;
    if (is_padding()) return nullptr;
    return (kind == RopeHead::kKey ? args.k.get() : args.v.get()) + to_pool + at;
  }
};

/// Heads that stay in registers.
template <class W>
class RopeInRegisters {
 public:
  using Heads = RopeHeads;

  __device__ explicit RopeInRegisters(const RopeKvArgs<W, BFloat16>& args)
      : args_(args),
        half_(static_cast<int>(args.schedule.head_dim / 2)),
        first_(Heads::lane() * Heads::kWidth),
        active_(first_ < half_),
        inverse_dim_(Heads::inverse(args.schedule.head_dim)) {
    if (!active_) return;
    unpack(load_packed<Heads::kWidth>(args.inv_freq.get() + first_), inv_freq_);
    if (args.q_norm.get() == nullptr) return;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int at = first_ + part * half_;
      q_norm_[part] = load_packed<Heads::kWidth>(args.q_norm.get() + at);
      k_norm_[part] = load_packed<Heads::kWidth>(args.k_norm.get() + at);
    }
  }

  /// Everything that constants decide about the rows that the half warps take from row `in_tile` of
  /// the work on.
  __device__ __forceinline__ void prepare(const RopeWork& work, int in_tile) {
    in_tile += work.row_of_half_warp();
    here_ = active_ && work.row_of_half_warp() < work.rows_at_once && in_tile < work.rows;
    if (!here_) return;
    const std::int64_t row = work.first_row + in_tile;
    row_ = RopeRow<W>(args_, row);
    const float position = static_cast<float>(args_.positions.get()[row]);
#pragma unroll
    for (int e = 0; e < Heads::kWidth; ++e) {
      sincosf(__fmul_rn(position, inv_freq_[e]), &sine_[e], &cosine_[e]);
      sine_[e] *= args_.attention_factor;
      cosine_[e] *= args_.attention_factor;
    }
  }

  /// The prepared rows.
  __device__ __forceinline__ void run(const float* qkv, const RopeWork& work) const {
    TW_ROLLED_LOOP
    for (int h = 0; h < work.count(); h += work.heads_at_once * Heads::kBatch) {
      turn_heads(qkv, work, h + work.head_of_half_warp());
    }
  }

  __device__ static int rows_at_once(const RopeWork& work) {
    return work.rows_at_once;
  }

 private:
  using Pairs = float[2][RopeHeads::kWidth];  // first and second elements

  /// Heads `first` + heads_at_once b of this half warp's row, for b in [0, kBatch). All lanes of
  /// the warp call it.
  __device__ __forceinline__ void turn_heads(const float* qkv, const RopeWork& work,
                                             int first) const {
    Packed<float, Heads::kWidth> packed[Heads::kBatch][2];
#pragma unroll
    for (int b = 0; b < Heads::kBatch; ++b) {
      const int head = first + b * work.heads_at_once;
      packed[b][0] = packed[b][1] = {};
      if (here_ && head < work.count()) {
        const float* const from = qkv + row_.from + work.column(head) * 2 * half_ + first_;
        packed[b][0] = load_packed<Heads::kWidth>(from);
        packed[b][1] = load_packed<Heads::kWidth>(from + half_);
      }
    }
    // All scales first: without a branch between them, the butterflies of the heads overlap.
    float scale[Heads::kBatch];
    if (args_.q_norm.get() != nullptr) {
#pragma unroll
      for (int b = 0; b < Heads::kBatch; ++b) {
        scale[b] = Heads::scale_of(squares_of(packed[b]), inverse_dim_, args_.eps);
      }
    }
#pragma unroll
    for (int b = 0; b < Heads::kBatch; ++b) {
      const int head = first + b * work.heads_at_once;
      if (!here_ || head >= work.count()) continue;
      BFloat16* const to = row_.to(args_, work, head);
      if (to == nullptr) continue;
      Pairs pairs;
      unpack(packed[b][0], pairs[0]);
      unpack(packed[b][1], pairs[1]);
      if (work.kind(head) != RopeHead::kValue) {
        if (args_.q_norm.get() != nullptr) normalise(pairs, scale[b], work.kind(head));
        turn(pairs);
      }
      store_packed(to + first_, pack<BFloat16>(pairs[0]));
      store_packed(to + first_ + half_, pack<BFloat16>(pairs[1]));
    }
  }

  __device__ static float squares_of(const Packed<float, RopeHeads::kWidth> (&parts)[2]) {
    float squares = 0.0F;
#pragma unroll
    for (int e = 0; e < 2 * Heads::kWidth; ++e) {
      const float value = __uint_as_float(parts[e / Heads::kWidth].word[e % Heads::kWidth]);
      squares = fmaf(value, value, squares);
    }
    return squares;
  }

  __device__ __forceinline__ void normalise(Pairs& pairs, float scale, RopeHead kind) const {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      // Chosen word by word: a reference to either would put both into local memory.
      Packed<W, Heads::kWidth> packed;
#pragma unroll
      for (int i = 0; i < packed.kWords; ++i) {
        packed.word[i] = kind == RopeHead::kQuery ? q_norm_[part].word[i] : k_norm_[part].word[i];
      }
      float weight[Heads::kWidth];
      unpack(packed, weight);
#pragma unroll
      for (int e = 0; e < Heads::kWidth; ++e) pairs[part][e] = pairs[part][e] * scale * weight[e];
    }
  }

  __device__ __forceinline__ void turn(Pairs& pairs) const {
#pragma unroll
    for (int e = 0; e < Heads::kWidth; ++e) {
      Heads::turn(pairs[0][e], pairs[1][e], cosine_[e], sine_[e]);
      if (row_.is_padding()) pairs[0][e] = pairs[1][e] = 0.0F;  // its queries
    }
  }

  const RopeKvArgs<W, BFloat16>& args_;
  int half_, first_;
  bool active_;
  float inverse_dim_;
  float inv_freq_[RopeHeads::kWidth] = {};
  Packed<W, RopeHeads::kWidth> q_norm_[2] = {}, k_norm_[2] = {};
  // Of the row that this half warp is at.
  bool here_ = false;
  RopeRow<W> row_;
  float cosine_[RopeHeads::kWidth] = {}, sine_[RopeHeads::kWidth] = {};
};

/// All other heads.
template <class W>
class RopeInPasses {
 public:
  using Heads = RopeHeads;

  __device__ explicit RopeInPasses(const RopeKvArgs<W, BFloat16>& args)
      : args_(args), dim_(args.schedule.head_dim), half_(dim_ / 2) {}

  __device__ void prepare(const RopeWork& /*work*/, int /*in_tile*/) {}

  __device__ void run(const float* qkv, const RopeWork& work) const {
    const int count = work.rows * work.count();
    TW_ROLLED_LOOP
    for (int first = 0; first < count; first += Heads::kAtOnce) {
      const int item = first + Heads::half_warp();
      turn_head(qkv, work, item / work.count(), item % work.count(), item < count);
    }
  }

  __device__ static int rows_at_once(const RopeWork& work) { return work.rows; }

 private:
  /// All lanes of the warp call it.
  __device__ void turn_head(const float* qkv, const RopeWork& work, int in_tile, int head,
                            bool here) const {
    const std::int64_t row = work.first_row + in_tile;
    const RopeHead kind = work.kind(head);
    RopeRow<W> place;
    if (here) place = RopeRow<W>(args_, row);
    const float* const from = qkv + place.from + work.column(head) * dim_;
    float scale = 1.0F;
    if (args_.q_norm.get() != nullptr) {
      float squares = 0.0F;
      if (here) add_squares(from, squares);
      scale = Heads::scale_of(squares, Heads::inverse(dim_), args_.eps);
    }
    BFloat16* const to = here ? place.to(args_, work, head) : nullptr;
    if (to == nullptr) return;
    const W* const weight =
        kind == RopeHead::kQuery ? args_.q_norm.get() : args_.k_norm.get();  // null: no norm
    const float position = static_cast<float>(args_.positions.get()[row]);
    TW_ROLLED_LOOP
    for (std::int64_t i = Heads::lane(); i < half_; i += Heads::kLanes) {
      float a = from[i];
      float b = from[half_ + i];
      if (kind != RopeHead::kValue) {
        if (weight != nullptr) {
          a = a * scale * to_float(weight[i]);
          b = b * scale * to_float(weight[half_ + i]);
        }
        float sine;
        float cosine;
        sincosf(__fmul_rn(position, args_.inv_freq.get()[i]), &sine, &cosine);
        Heads::turn(a, b, cosine * args_.attention_factor, sine * args_.attention_factor);
        if (place.is_padding()) a = b = 0.0F;  // its queries
      }
      to[i] = from_float<BFloat16>(a);
      to[half_ + i] = from_float<BFloat16>(b);
    }
  }

  /// This lane's squares of a head.
  __device__ void add_squares(const float* head, float& squares) const {
    TW_ROLLED_LOOP
    for (std::int64_t i = Heads::lane() * Heads::kWidth; i < half_;
         i += Heads::kLanes * Heads::kWidth) {
      const std::int64_t end = min64(half_, i + Heads::kWidth);
      TW_ROLLED_LOOP
      for (std::int64_t e = i; e < end; ++e) squares = fmaf(head[e], head[e], squares);
      TW_ROLLED_LOOP
      for (std::int64_t e = half_ + i; e < half_ + end; ++e) {
        squares = fmaf(head[e], head[e], squares);
      }
    }
  }

  const RopeKvArgs<W, BFloat16>& args_;
  std::int64_t dim_, half_;
};

using RopeSync = SyncCta<AtomicsCuda, RopeKvOperands::kSyncSlots>;

/// Out of line: its divisions are long, and a kernel whose qkv has one semaphore runs none of them.
TW_NO_INLINE __device__ inline std::int64_t rope_unit(const RopeKvSchedule& s, int m, int g,
                                                      std::int64_t i) {
  const Coord tile{m, g};
  return i < s.num_units(tile) ? s.unit(tile, i) : -1;
}

/// Waits for the units of qkv that the work reads: queries, keys, values. Where they all share one
/// semaphore, or have none, the first wait says it all.
__device__ __forceinline__ Ready wait_for_qkv(RopeSync& sync, const RopeKvSchedule& s,
                                              const RopeWork& work) {
  constexpr int kSlot = RopeKvOperands::kSyncQkv;
  const OperandSync& qkv = sync.context().operands[kSlot];
  const bool one = qkv.words == nullptr || (qkv.flags & OperandSync::kSingleTile) != 0;
  std::int64_t unit = one ? 0 : rope_unit(s, work.m, work.g, 0);
  Ready ready(true);
  TW_ROLLED_LOOP
  for (std::int64_t i = 1; unit >= 0 && ready; ++i) {
    const std::int64_t next = one ? -1 : rope_unit(s, work.m, work.g, i);
    ready = sync.wait_input(kSlot, {work.m, unit});
    unit = next;
  }
  return ready;
}

template <class Rows, class Args>
__device__ __forceinline__ void rope_kv_works(const Args& args, RopeSync& sync) {
  using Operands = RopeKvOperands;
  Rows rows(args);
  for (std::int64_t at = blockIdx.x; at < args.num_works; at += gridDim.x) {
    const RopeWork work(args.schedule, sync.remap(at));
    Ready ready(false);
    TW_ROLLED_LOOP
    for (int r = 0; r < work.rows; r += Rows::rows_at_once(work)) {
      rows.prepare(work, r);
      if (r == 0) ready = wait_for_qkv(sync, args.schedule, work);
      if (!ready) return;
      rows.run(args.qkv.get(ready), work);
    }
    sync.signal_output(Operands::kSyncQ, {work.m, work.g});
    sync.signal_output(Operands::kSyncK, {work.m, work.g});
    sync.signal_output(Operands::kSyncV, {work.m, work.g});
  }
}

template <class W>
__global__ void __launch_bounds__(RopeHeads::kThreads)
    rope_kv_cuda(const __grid_constant__ RopeKvArgs<W, BFloat16> args,
                 const __grid_constant__ SyncContext<RopeKvOperands::kSyncSlots> context) {
  RopeSync sync(context);
  if (!sync.begin_cta()) return;
  if (RopeHeads::fits(args.schedule.head_dim, args.qkv.ptr, args.q.get(), args.k.get(),
                      args.v.get(), args.inv_freq.get(), args.q_norm.get(), args.k_norm.get())) {
    rope_kv_works<RopeInRegisters<W>>(args, sync);
  } else {
    rope_kv_works<RopeInPasses<W>>(args, sync);
  }
}

}  // namespace tileweave

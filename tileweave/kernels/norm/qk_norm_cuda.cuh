// QK-norm on a GPU: half a warp per head, so a block has 16 heads at a time.
//
// Any architecture from sm_80, any head_dim. Lane l of a half warp holds elements 4 l + 64 c + [0,
// 4) of either half of a head, the halves that RoPE pairs (rope_kv_cuda.cuh adds up in the same
// order), and adds their squares in ascending c, first half first; the 16 lanes meet in a
// butterfly. Heads of up to 128 elements stay in registers, four per half warp at once, with the
// weights loaded before the first wait; longer ones, and those that are not aligned to 16 bytes,
// are read twice.
#pragma once

#include <cstdint>

#include "tileweave/core/packed_elements.cuh"
#include "tileweave/kernels/norm/qk_norm_args.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"
#include "tileweave/tile/matrix_tile.h"

namespace tileweave {

struct QkNormHeads {
  static constexpr int kThreads = 256;
  static constexpr int kLanes = 16;
  static constexpr int kAtOnce = kThreads / kLanes;  // heads of a block
  static constexpr int kBatch = 4;                   // heads in the registers of a half warp
  static constexpr int kWidth = 4;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static int half_warp() { return static_cast<int>(threadIdx.x) / kLanes; }

  /// Head b of this half warp, counted from the block's head `first`.
  __device__ static unsigned item(unsigned first, int b) {
    return first + static_cast<unsigned>(b * kAtOnce + half_warp());
  }

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
};

static_assert(kQkNormResources.threads == QkNormHeads::kThreads);

/// The heads of a work, numbered row by row.
struct QkNormItems {
  std::int64_t first_row, first_head;
  unsigned heads, count;

  __device__ QkNormItems(const MatrixTile& tile, std::int64_t dim)
      : first_row(tile.first_row),
        first_head(tile.first_col / dim),
        heads(static_cast<unsigned>(tile.cols / dim)),
        count(static_cast<unsigned>(tile.rows) * heads) {}

  __device__ std::int64_t row(unsigned item) const { return first_row + item / heads; }
  __device__ std::int64_t head(unsigned item) const { return first_head + item % heads; }
};

/// Heads that stay in registers.
template <class W>
class QkNormInRegisters {
 public:
  using Heads = QkNormHeads;

  __device__ explicit QkNormInRegisters(const QkNormArgs<W>& args)
      : args_(args),
        half_(static_cast<int>(args.head_dim / 2)),
        first_(Heads::lane() * Heads::kWidth),
        active_(first_ < half_),
        inverse_dim_(Heads::inverse(args.head_dim)) {
    if (!active_) return;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int at = first_ + part * half_;
      q_weight_[part] = load_packed<Heads::kWidth>(args.q_weight.get() + at);
      k_weight_[part] = load_packed<Heads::kWidth>(args.k_weight.get() + at);
    }
  }

  /// Heads `first` + half warp + 16 b of the work, for b in [0, kBatch). All lanes of the warp call
  /// it.
  __device__ __forceinline__ void run(const Ready& ready, const QkNormItems& items,
                                      unsigned first) const {
    Packed<float, Heads::kWidth> packed[Heads::kBatch][2];
#pragma unroll
    for (int b = 0; b < Heads::kBatch; ++b) {
      const unsigned item = Heads::item(first, b);
      packed[b][0] = packed[b][1] = {};
      if (active_ && item < items.count) {
        const float* const from = args_.qkv.get(ready) + place(items, item);
        packed[b][0] = load_packed<Heads::kWidth>(from);
        packed[b][1] = load_packed<Heads::kWidth>(from + half_);
      }
    }
    // All scales first: without a branch between them, the butterflies of the heads overlap.
    float scale[Heads::kBatch];
#pragma unroll
    for (int b = 0; b < Heads::kBatch; ++b) {
      scale[b] = Heads::scale_of(squares_of(packed[b]), inverse_dim_, args_.eps);
    }
#pragma unroll
    for (int b = 0; b < Heads::kBatch; ++b) {
      const unsigned item = Heads::item(first, b);
      if (!active_ || item >= items.count) continue;
      const std::int64_t head = items.head(item);
      const bool is_value = head >= args_.heads + args_.kv_heads;
      float* const to = args_.out.get() + place(items, item);
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        float values[Heads::kWidth];
        unpack(packed[b][part], values);
        if (!is_value) multiply(values, scale[b], part, head < args_.heads);
        store_packed(to + part * half_, pack<float>(values));
      }
    }
  }

 private:
  /// First element of this lane in the head.
  __device__ std::int64_t place(const QkNormItems& items, unsigned item) const {
    return items.row(item) * args_.tiles.shape[1] + items.head(item) * 2 * half_ + first_;
  }

  __device__ static float squares_of(const Packed<float, QkNormHeads::kWidth> (&parts)[2]) {
    float squares = 0.0F;
#pragma unroll
    for (int e = 0; e < 2 * Heads::kWidth; ++e) {
      const float value = __uint_as_float(parts[e / Heads::kWidth].word[e % Heads::kWidth]);
      squares = fmaf(value, value, squares);
    }
    return squares;
  }

  __device__ __forceinline__ void multiply(float (&values)[QkNormHeads::kWidth], float scale,
                                           int part, bool is_query) const {
    // Chosen word by word: a reference to either would put both into local memory.
    Packed<W, Heads::kWidth> packed;
#pragma unroll
    for (int i = 0; i < packed.kWords; ++i) {
      packed.word[i] = is_query ? q_weight_[part].word[i] : k_weight_[part].word[i];
    }
    float weight[Heads::kWidth];
    unpack(packed, weight);
#pragma unroll
    for (int e = 0; e < Heads::kWidth; ++e) values[e] = values[e] * scale * weight[e];
  }

  const QkNormArgs<W>& args_;
  int half_, first_;
  bool active_;
  float inverse_dim_;
  Packed<W, QkNormHeads::kWidth> q_weight_[2] = {}, k_weight_[2] = {};
};

/// All other heads: read once for the scale and once for the result.
template <class W>
class QkNormInPasses {
 public:
  using Heads = QkNormHeads;

  __device__ explicit QkNormInPasses(const QkNormArgs<W>& args) : args_(args) {}

  __device__ void run(const Ready& ready, const QkNormItems& items, unsigned first) const {
    TW_ROLLED_LOOP
    for (int b = 0; b < Heads::kBatch; ++b) {
      const unsigned item = Heads::item(first, b);
      const std::int64_t head = items.head(item);
      const std::int64_t at = items.row(item) * args_.tiles.shape[1] + head * args_.head_dim;
      run_head(args_.qkv.get(ready) + at, args_.out.get() + at, head, item < items.count);
    }
  }

 private:
  __device__ void run_head(const float* from, float* to, std::int64_t head, bool here) const {
    const std::int64_t dim = args_.head_dim;
    const bool normal = head < args_.heads + args_.kv_heads;
    float squares = 0.0F;
    if (here && normal) {
      for_each_part([&](std::int64_t i) { squares = fmaf(from[i], from[i], squares); });
    }
    const float scale = Heads::scale_of(squares, Heads::inverse(dim), args_.eps);
    if (!here) return;
    const W* const weight = head < args_.heads ? args_.q_weight.get() : args_.k_weight.get();
    for_each_part(
        [&](std::int64_t i) { to[i] = normal ? from[i] * scale * to_float(weight[i]) : from[i]; });
  }

  /// Calls `visit` with this lane's elements of a head, in the order of their squares.
  template <class Visit>
  __device__ void for_each_part(Visit visit) const {
    const std::int64_t dim = args_.head_dim;
    const std::int64_t half = dim / 2;
    TW_ROLLED_LOOP
    for (std::int64_t i = Heads::lane() * Heads::kWidth; i < dim - half;
         i += Heads::kLanes * Heads::kWidth) {
      for (std::int64_t e = i; e < min64(half, i + Heads::kWidth); ++e) visit(e);
      for (std::int64_t e = i; e < min64(dim - half, i + Heads::kWidth); ++e) visit(half + e);
    }
  }

  const QkNormArgs<W>& args_;
};

template <class Rows, class Args>
__device__ __forceinline__ void qk_norm_works(const Args& args,
                                              SyncCta<AtomicsCuda, QkNormOperands::kSlots>& sync) {
  using Operands = QkNormOperands;
  const Rows heads(args);
  const std::int64_t works = matrix_tiles(args.tiles);
  for (std::int64_t at = blockIdx.x; at < works; at += gridDim.x) {
    const MatrixTile tile = matrix_tile(args.tiles, sync.remap(at));
    const QkNormItems items(tile, args.head_dim);
    const Ready ready = sync.wait_input(Operands::kSlotQkv, {tile.m, tile.n});
    if (!ready) return;
    // In uniform control flow: scale_of shuffles between all lanes of a warp.
    TW_ROLLED_LOOP
    for (unsigned i = 0; i < items.count; i += QkNormHeads::kBatch * QkNormHeads::kAtOnce) {
      heads.run(ready, items, i);
    }
    sync.signal_output(Operands::kSlotOut, {tile.m, tile.n});
  }
}

template <class W>
__global__ void __launch_bounds__(QkNormHeads::kThreads)
    qk_norm_cuda(const __grid_constant__ QkNormArgs<W> args,
                 const __grid_constant__ SyncContext<QkNormOperands::kSlots> context) {
  SyncCta<AtomicsCuda, QkNormOperands::kSlots> sync(context);
  if (!sync.begin_cta()) return;
  if (QkNormHeads::fits(args.head_dim, args.qkv.ptr, args.q_weight.get(), args.k_weight.get(),
                        args.out.get())) {
    qk_norm_works<QkNormInRegisters<W>>(args, sync);
  } else {
    qk_norm_works<QkNormInPasses<W>>(args, sync);
  }
}

}  // namespace tileweave

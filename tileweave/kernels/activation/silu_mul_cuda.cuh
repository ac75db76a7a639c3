// SiLU-mul on a GPU: eight neighbouring elements per thread at a time, two such groups in flight.
//
// Any architecture from sm_80, any shape and tiling; groups that are not aligned to 16 bytes go
// element by element. A work of up to 4096 elements has all its loads on their way at once: a row
// of 8192 columns wants tile_m = 1 and tile_n = 2048 or 4096 at decode sizes.
#pragma once

#include <cstdint>

#include "tileweave/core/packed_elements.cuh"
#include "tileweave/kernels/activation/silu_mul_args.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"
#include "tileweave/tile/matrix_tile.h"

namespace tileweave {

inline constexpr int kSiluMulThreads = 256;
static_assert(kSiluMulResources.threads == kSiluMulThreads);

/// silu(gate) * up, without a branch, so that the elements of a thread overlap: a reciprocal with
/// one Newton step instead of a quotient. The denominator is scaled into the range of the fast
/// reciprocal; where exp overflows the result is zero, as in the formula.
__device__ __forceinline__ float silu_mul_of(float gate, float up) {
  constexpr float kScale = 0x1p-32F;
  const float exponential = expf(-gate);
  const float denominator = fmaf(exponential, kScale, kScale);
  float reciprocal = __fdividef(1.0F, denominator);
  reciprocal = fmaf(reciprocal, fmaf(-denominator, reciprocal, 1.0F), reciprocal);
  const float sigmoid = exponential <= 0x1.fffffep127F ? reciprocal * kScale : 0.0F;
  return gate * sigmoid * up;
}

/// Out of line: a kernel whose gate_up has one semaphore runs none of its divisions.
TW_NO_INLINE __device__ inline Coord silu_mul_input(const Tiling& tiles, std::int64_t m,
                                                    std::int64_t n, int part) {
  return SiluMulInput::tile(tiles, {m, n}, part);
}

/// Waits for gate and up. Where they share one semaphore, or have none, the first wait says it all.
__device__ __forceinline__ Ready
wait_for_gate_up(SyncCta<AtomicsCuda, SiluMulOperands::kSlots>& sync, const Tiling& tiles,
                 const MatrixTile& tile) {
  constexpr int kSlot = SiluMulOperands::kSlotGateUp;
  const OperandSync& gate_up = sync.context().operands[kSlot];
  const bool one = gate_up.words == nullptr || (gate_up.flags & OperandSync::kSingleTile) != 0;
  Ready ready(true);
  TW_ROLLED_LOOP
  for (int part = 0; part < (one ? 1 : 2) && ready; ++part) {
    ready = sync.wait_input(kSlot,
                            one ? Coord{tile.m, 0} : silu_mul_input(tiles, tile.m, tile.n, part));
  }
  return ready;
}

template <class Y>
class SiluMulTile {
 public:
  static constexpr int kWidth = 8;
  static constexpr int kBatch = 2;

  __device__ SiluMulTile(const SiluMulArgs<Y>& args, const MatrixTile& tile)
      : out_(args.out.get()), cols_(args.tiles.shape[1]), tile_(tile) {}

  /// Whether groups of eight do not cross an edge, and lie aligned.
  __device__ bool is_aligned_to_groups(const float* gate_up) const {
    return (cols_ | tile_.first_col | tile_.cols) % kWidth == 0 && is_aligned(gate_up) &&
           is_aligned(out_);
  }

  __device__ void run_groups(const float* gate_up) const {
    const auto across = static_cast<unsigned>(tile_.cols / kWidth);
    const unsigned count = static_cast<unsigned>(tile_.rows) * across;
    TW_ROLLED_LOOP
    for (unsigned first = threadIdx.x; first < count; first += kBatch * kSiluMulThreads) {
      Packed<float, kWidth> gate[kBatch];
      Packed<float, kWidth> up[kBatch];
      std::int64_t to[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const unsigned group = first + static_cast<unsigned>(b) * kSiluMulThreads;
        if (group >= count) break;
        const unsigned row = group / across;
        const std::int64_t at = (tile_.first_row + row) * cols_;
        to[b] = at + tile_.first_col + (group - row * across) * kWidth;
        gate[b] = load_packed<kWidth>(gate_up + at + to[b]);
        up[b] = load_packed<kWidth>(gate_up + at + to[b] + cols_);
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (first + static_cast<unsigned>(b) * kSiluMulThreads >= count) break;
        float gates[kWidth];
        float values[kWidth];
        unpack(gate[b], gates);
        unpack(up[b], values);
#pragma unroll
        for (int e = 0; e < kWidth; ++e) values[e] = silu_mul_of(gates[e], values[e]);
        store_packed(out_ + to[b], pack<Y>(values));
      }
    }
  }

  __device__ void run_elements(const float* gate_up) const {
    const std::int64_t count = tile_.rows * tile_.cols;
    TW_ROLLED_LOOP
    for (std::int64_t i = threadIdx.x; i < count; i += kSiluMulThreads) {
      const std::int64_t row = tile_.first_row + i / tile_.cols;
      const std::int64_t col = tile_.first_col + i % tile_.cols;
      const float* const gate = gate_up + row * 2 * cols_ + col;
      out_[row * cols_ + col] = from_float<Y>(silu_mul_of(gate[0], gate[cols_]));
    }
  }

 private:
  Y* out_;
  std::int64_t cols_;
  MatrixTile tile_;
};

template <class Y>
__global__ void __launch_bounds__(kSiluMulThreads)
    silu_mul_cuda(const __grid_constant__ SiluMulArgs<Y> args,
                  const __grid_constant__ SyncContext<SiluMulOperands::kSlots> context) {
  SyncCta<AtomicsCuda, SiluMulOperands::kSlots> sync(context);
  if (!sync.begin_cta()) return;
  const std::int64_t works = matrix_tiles(args.tiles);
  for (std::int64_t at = blockIdx.x; at < works; at += gridDim.x) {
    const MatrixTile tile = matrix_tile(args.tiles, sync.remap(at));
    const SiluMulTile<Y> work(args, tile);
    const Ready ready = wait_for_gate_up(sync, args.tiles, tile);
    if (!ready) return;
    const float* const gate_up = args.gate_up.get(ready);
    if (work.is_aligned_to_groups(gate_up)) {
      work.run_groups(gate_up);
    } else {
      work.run_elements(gate_up);
    }
    sync.signal_output(SiluMulOperands::kSlotOut, {tile.m, tile.n});
  }
}

}  // namespace tileweave

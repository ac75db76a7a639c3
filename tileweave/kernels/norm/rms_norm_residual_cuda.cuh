// RMSNorm of a residual sum on a GPU: one row per block at a time (see norm_row.cuh), the weight in
// registers before the first wait.
//
// Any architecture from sm_80, any number of rows and columns. With tile_m = 1 every row has a
// block of its own, which is what decoding wants. A thread reads its elements of a row before it
// writes any of them, and no other's: sum and y may share the buffers of x and delta.
#pragma once

#include <cstdint>

#include "tileweave/kernels/norm/norm_row.cuh"
#include "tileweave/kernels/norm/rms_norm_residual_args.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

static_assert(kRmsNormResidualResources.threads == NormRow::kThreads);
static_assert(kRmsNormResidualSharedBytes == sizeof(NormRow::Shared));

/// Rows that stay in registers.
template <class W, class Y>
class ResidualInRegisters {
 public:
  __device__ explicit ResidualInRegisters(const RmsNormResidualArgs<W, Y>& args)
      : args_(args),
        cols_(static_cast<int>(args.rows.shape[1])),
        inverse_cols_(NormRow::inverse(cols_)) {
    NormRow::load(args.weight.get(), cols_, weight_);
  }

  __device__ void run(const Ready& ready, std::int64_t row, NormRow::Shared& shared,
                      unsigned turn) const {
    Packed<float, NormRow::kWidth> x[NormRow::kChunks];
    Packed<float, NormRow::kWidth> delta[NormRow::kChunks];
    NormRow::load(args_.x.get(ready) + row * cols_, cols_, x);
    NormRow::load(args_.delta.get(ready) + row * cols_, cols_, delta);
    float* const to_sum = args_.sum.get() + row * cols_;
    float sum[NormRow::kChunks][NormRow::kWidth];
    float squares = 0.0F;
#pragma unroll
    for (int c = 0; c < NormRow::kChunks; ++c) {
      float other[NormRow::kWidth];
      unpack(x[c], sum[c]);
      unpack(delta[c], other);
#pragma unroll
      for (int e = 0; e < NormRow::kWidth; ++e) sum[c][e] += other[e];
      const int column = NormRow::column(c);
      if (column < cols_) store_packed(to_sum + column, pack<float>(sum[c]));
      squares = __fadd_rn(squares, NormRow::squares_of(sum[c]));
    }
    const float scale = NormRow::scale_of(squares, inverse_cols_, args_.eps, shared, turn);
    Y* const y = args_.y.get() + row * cols_;
#pragma unroll
    for (int c = 0; c < NormRow::kChunks; ++c) {
      const int column = NormRow::column(c);
      if (column < cols_) {
        store_packed(y + column, NormRow::scaled<W, Y>(sum[c], scale, weight_[c]));
      }
    }
  }

 private:
  const RmsNormResidualArgs<W, Y>& args_;
  int cols_;
  float inverse_cols_;
  Packed<W, NormRow::kWidth> weight_[NormRow::kChunks];
};

/// All other rows: added up in one pass, scaled in a second that reads what this thread wrote.
template <class W, class Y>
class ResidualInPasses {
 public:
  __device__ explicit ResidualInPasses(const RmsNormResidualArgs<W, Y>& args) : args_(args) {}

  __device__ void run(const Ready& ready, std::int64_t row, NormRow::Shared& shared,
                      unsigned turn) const {
    const std::int64_t cols = args_.rows.shape[1];
    const float* const x = args_.x.get(ready) + row * cols;
    const float* const delta = args_.delta.get(ready) + row * cols;
    float* const sum = args_.sum.get() + row * cols;
    Y* const y = args_.y.get() + row * cols;
    float values[NormRow::kWidth];
    float others[NormRow::kWidth];
    float squares = 0.0F;
    TW_ROLLED_LOOP
    for (std::int64_t j = NormRow::column(0); j < cols; j += NormRow::kStep) {
      load_some(x + j, cols - j, values);
      load_some(delta + j, cols - j, others);
#pragma unroll
      for (int e = 0; e < NormRow::kWidth; ++e) values[e] += others[e];
      store_some(sum + j, cols - j, values);
      squares = __fadd_rn(squares, NormRow::squares_of(values));
    }
    const float scale = NormRow::scale_of(squares, NormRow::inverse(cols), args_.eps, shared, turn);
    TW_ROLLED_LOOP
    for (std::int64_t j = NormRow::column(0); j < cols; j += NormRow::kStep) {
      load_some(sum + j, cols - j, values);
      load_some(args_.weight.get() + j, cols - j, others);
#pragma unroll
      for (int e = 0; e < NormRow::kWidth; ++e) values[e] = values[e] * scale * others[e];
      store_some(y + j, cols - j, values);
    }
  }

 private:
  const RmsNormResidualArgs<W, Y>& args_;
};

template <class Rows, class Args>
__device__ __forceinline__ void rms_norm_residual_works(
    const Args& args, SyncCta<AtomicsCuda, RmsNormResidualOperands::kSlots>& sync,
    NormRow::Shared& shared) {
  using Operands = RmsNormResidualOperands;
  const Rows rows(args);
  unsigned turn = 0;
  for (std::int64_t at = blockIdx.x; at < args.rows.num_tiles(0); at += gridDim.x) {
    const std::int64_t work = sync.remap(at);
    if (!sync.wait_input(Operands::kSlotX, {work})) return;
    const Ready ready = sync.wait_input(Operands::kSlotDelta, {work});
    if (!ready) return;
    const std::int64_t first = work * args.rows.tile[0];
    const std::int64_t end = min64(args.rows.shape[0], first + args.rows.tile[0]);
    TW_ROLLED_LOOP
    for (std::int64_t i = first; i < end; ++i) rows.run(ready, i, shared, turn++);
    // y first: the next GEMM waits for it, the sum only for the norm after that.
    sync.signal_output(Operands::kSlotY, {work});
    sync.signal_output(Operands::kSlotSum, {work});
  }
}

template <class W, class Y>
__global__ void __launch_bounds__(NormRow::kThreads) rms_norm_residual_cuda(
    const __grid_constant__ RmsNormResidualArgs<W, Y> args,
    const __grid_constant__ SyncContext<RmsNormResidualOperands::kSlots> context) {
  __shared__ NormRow::Shared shared;
  SyncCta<AtomicsCuda, RmsNormResidualOperands::kSlots> sync(context);
  if (!sync.begin_cta()) return;
  if (NormRow::fits(args.rows.shape[1], args.x.ptr, args.delta.ptr, args.weight.get(),
                    args.sum.get(), args.y.get())) {
    rms_norm_residual_works<ResidualInRegisters<W, Y>>(args, sync, shared);
  } else {
    rms_norm_residual_works<ResidualInPasses<W, Y>>(args, sync, shared);
  }
}

}  // namespace tileweave

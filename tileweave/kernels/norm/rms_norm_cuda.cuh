// RMSNorm on a GPU: one row per block at a time (see norm_row.cuh), the weight in registers before
// the first wait.
//
// Any architecture from sm_80, any number of rows and columns. A work has tile_m rows: with
// tile_m = 1 every row has a block of its own, which is what decoding wants.
#pragma once

#include <cstdint>

#include "tileweave/kernels/norm/norm_row.cuh"
#include "tileweave/kernels/norm/rms_norm_args.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

static_assert(kRmsNormThreads == NormRow::kThreads);
static_assert(kRmsNormSharedBytes == sizeof(NormRow::Shared));

/// Rows that stay in registers.
template <class X, class W, class Y>
class RmsNormInRegisters {
 public:
  __device__ explicit RmsNormInRegisters(const RmsNormArgs<X, W, Y>& args)
      : args_(args),
        cols_(static_cast<int>(args.cols)),
        inverse_cols_(NormRow::inverse(args.cols)) {
    NormRow::load(args.weight.get(), cols_, weight_);
  }

  __device__ void run(const Ready& ready, std::int64_t row, NormRow::Shared& shared,
                      unsigned turn) const {
    Packed<X, NormRow::kWidth> x[NormRow::kChunks];
    NormRow::load(args_.x.get(ready) + row * cols_, cols_, x);
    float values[NormRow::kChunks][NormRow::kWidth];
    float squares = 0.0F;
#pragma unroll
    for (int c = 0; c < NormRow::kChunks; ++c) {
      unpack(x[c], values[c]);
      squares = __fadd_rn(squares, NormRow::squares_of(values[c]));
    }
    const float scale = NormRow::scale_of(squares, inverse_cols_, args_.eps, shared, turn);
    Y* const y = args_.y.get() + row * cols_;
#pragma unroll
    for (int c = 0; c < NormRow::kChunks; ++c) {
      const int column = NormRow::column(c);
      if (column < cols_) {
        store_packed(y + column, NormRow::scaled<W, Y>(values[c], scale, weight_[c]));
      }
    }
  }

 private:
  const RmsNormArgs<X, W, Y>& args_;
  int cols_;
  float inverse_cols_;
  Packed<W, NormRow::kWidth> weight_[NormRow::kChunks];
};

/// All other rows: read once for the scale and once for the result.
template <class X, class W, class Y>
class RmsNormInPasses {
 public:
  __device__ explicit RmsNormInPasses(const RmsNormArgs<X, W, Y>& args) : args_(args) {}

  __device__ void run(const Ready& ready, std::int64_t row, NormRow::Shared& shared,
                      unsigned turn) const {
    const std::int64_t cols = args_.cols;
    const X* const x = args_.x.get(ready) + row * cols;
    Y* const y = args_.y.get() + row * cols;
    float values[NormRow::kWidth];
    float weight[NormRow::kWidth];
    float squares = 0.0F;
    TW_ROLLED_LOOP
    for (std::int64_t j = NormRow::column(0); j < cols; j += NormRow::kStep) {
      load_some(x + j, cols - j, values);
      squares = __fadd_rn(squares, NormRow::squares_of(values));
    }
    const float scale = NormRow::scale_of(squares, NormRow::inverse(cols), args_.eps, shared, turn);
    TW_ROLLED_LOOP
    for (std::int64_t j = NormRow::column(0); j < cols; j += NormRow::kStep) {
      load_some(x + j, cols - j, values);
      load_some(args_.weight.get() + j, cols - j, weight);
#pragma unroll
      for (int e = 0; e < NormRow::kWidth; ++e) values[e] = values[e] * scale * weight[e];
      store_some(y + j, cols - j, values);
    }
  }

 private:
  const RmsNormArgs<X, W, Y>& args_;
};

template <class Rows, class Args>
__device__ __forceinline__ void rms_norm_works(const Args& args,
                                               SyncCta<AtomicsCuda, RmsNormOperands::kSlots>& sync,
                                               NormRow::Shared& shared) {
  const Rows rows(args);
  unsigned turn = 0;
  for (std::int64_t at = blockIdx.x; at < args.num_works; at += gridDim.x) {
    const std::int64_t work = sync.remap(at);
    const Ready ready = sync.wait_input(RmsNormOperands::kSlotX, {work});
    if (!ready) return;
    const std::int64_t end = args.end_row(work);
    TW_ROLLED_LOOP
    for (std::int64_t i = args.first_row(work); i < end; ++i) rows.run(ready, i, shared, turn++);
    sync.signal_output(RmsNormOperands::kSlotY, {work});
  }
}

template <class X, class W, class Y>
__global__ void __launch_bounds__(kRmsNormThreads)
    rms_norm_cuda(const __grid_constant__ RmsNormArgs<X, W, Y> args,
                  const __grid_constant__ SyncContext<RmsNormOperands::kSlots> context) {
  __shared__ NormRow::Shared shared;
  SyncCta<AtomicsCuda, RmsNormOperands::kSlots> sync(context);
  if (!sync.begin_cta()) return;
  if (NormRow::fits(args.cols, args.x.ptr, args.weight.get(), args.y.get())) {
    rms_norm_works<RmsNormInRegisters<X, W, Y>>(args, sync, shared);
  } else {
    rms_norm_works<RmsNormInPasses<X, W, Y>>(args, sync, shared);
  }
}

}  // namespace tileweave

// RMSNorm on the emulated device: rows are unpacked to fp32, normalised, packed.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tileweave/kernels/norm/qk_norm.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/norm/rms_norm_args.h"
#include "tileweave/kernels/norm/rms_norm_residual.h"
#include "tileweave/kernels/norm/rms_norm_row.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

template <class X, class W, class Y>
void rms_norm_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  using Operands = RmsNormOperands;
  const auto& args = *reinterpret_cast<const RmsNormArgs<X, W, Y>*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<Operands::kSlots>*>(context_bytes);
  SyncCta<AtomicsCpu, Operands::kSlots> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;

  const std::int64_t cols = args.cols;
  std::vector<float> weight(static_cast<std::size_t>(padded_row(cols)));
  std::vector<float> row(weight.size());

  for (std::int64_t at = lane.block_index(); at < args.num_works; at += args.num_blocks) {
    const std::int64_t work = sync.remap(at);
    if (at == lane.block_index()) {
      // The weight is constant: read once, before the first wait.
      const TensorView<const W> from(args.weight.get(), {cols}, Operands::kWeight, lane.checker());
      unpack_row(from.run({0}, cols), cols, weight.data());
    }
    const Ready ready = sync.wait_input(Operands::kSlotX, {work});
    if (!ready) return;
    const MatrixView<const X> x(args.x.get(ready), cols, Operands::kX, lane.checker());
    const MatrixView<Y> y(args.y.get(), cols, Operands::kY, lane.checker());
    for (std::int64_t i = args.first_row(work); i < args.end_row(work); ++i) {
      unpack_row(x.row(i, 0, cols), cols, row.data());
      rms_norm_row_cpu(row.data(), weight.data(), cols, args.eps);
      Y* to = y.row(i, 0, cols);
      for (std::int64_t j = 0; j < cols; ++j) {
        to[j] = from_float<Y>(row[static_cast<std::size_t>(j)]);
      }
    }
    sync.signal_output(Operands::kSlotY, {work});
  }
}

template <class X, class W, class Y>
void add(KernelLibrary& kernels) {
  kernels.add({.name = rms_norm_kernel_name(kDTypeOf<X>, kDTypeOf<W>, kDTypeOf<Y>),
               .num_sync_slots = RmsNormOperands::kSlots,
               .cpu = rms_norm_cpu<X, W, Y>});
}

template <class X, class W>
void add_results(KernelLibrary& kernels) {
  add<X, W, float>(kernels);
  add<X, W, BFloat16>(kernels);
}

}  // namespace

void add_norm_cpu(KernelLibrary& kernels) {
  add_results<float, float>(kernels);
  add_results<float, BFloat16>(kernels);
  add_results<BFloat16, float>(kernels);
  add_results<BFloat16, BFloat16>(kernels);
  add<float, Float16, float>(kernels);
  add_rms_norm_residual_cpu(kernels);
  add_qk_norm_cpu(kernels);
}

}  // namespace tileweave

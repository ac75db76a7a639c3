// RMSNorm with residual on the emulated device: a row is added up, written as the sum, normalised
// and written as y.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tileweave/kernels/norm/rms_norm_residual.h"
#include "tileweave/kernels/norm/rms_norm_residual_args.h"
#include "tileweave/kernels/norm/rms_norm_row.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

template <class W>
void rms_norm_residual_cpu(CpuLane& lane, const std::byte* arg_bytes,
                           const std::byte* context_bytes) {
  using Operands = RmsNormResidualOperands;
  const auto& args = *reinterpret_cast<const RmsNormResidualArgs<W, float>*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<Operands::kSlots>*>(context_bytes);
  SyncCta<AtomicsCpu, Operands::kSlots> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;

  const std::int64_t cols = args.rows.shape[1];
  std::vector<float> weight(static_cast<std::size_t>(padded_row(cols)));
  std::vector<float> row(weight.size());

  for (std::int64_t at = lane.block_index(); at < args.rows.count(); at += args.num_blocks) {
    const std::int64_t work = sync.remap(at);
    if (at == lane.block_index()) {
      // The weight is constant: read once, before the first wait.
      const TensorView<const W> from(args.weight.get(), {cols}, Operands::kWeight, lane.checker());
      unpack_row(from.run({0}, cols), cols, weight.data());
    }
    if (!sync.wait_input(Operands::kSlotX, {work})) return;
    const Ready ready = sync.wait_input(Operands::kSlotDelta, {work});
    if (!ready) return;
    const MatrixView<const float> x(args.x.get(ready), cols, Operands::kX, lane.checker());
    const MatrixView<const float> delta(args.delta.get(ready), cols, Operands::kDelta,
                                        lane.checker());
    const MatrixView<float> sum(args.sum.get(), cols, Operands::kSum, lane.checker());
    const MatrixView<float> y(args.y.get(), cols, Operands::kY, lane.checker());
    const Box box = args.rows.box({work});
    for (std::int64_t i = box.begin[0]; i < box.begin[0] + box.size[0]; ++i) {
      const float* from_x = x.row(i, 0, cols);
      const float* from_delta = delta.row(i, 0, cols);
      for (std::int64_t j = 0; j < cols; ++j) {
        row[static_cast<std::size_t>(j)] = from_x[j] + from_delta[j];
      }
      std::copy_n(row.data(), cols, sum.row(i, 0, cols));
      rms_norm_row_cpu(row.data(), weight.data(), cols, args.eps);
      std::copy_n(row.data(), cols, y.row(i, 0, cols));
    }
    sync.signal_output(Operands::kSlotSum, {work});
    sync.signal_output(Operands::kSlotY, {work});
  }
}

template <class W>
void add(KernelLibrary& kernels) {
  kernels.add({.name = rms_norm_residual_kernel_name(kDTypeOf<W>, DType::kF32),
               .num_sync_slots = RmsNormResidualOperands::kSlots,
               .cpu = rms_norm_residual_cpu<W>});
}

}  // namespace

void add_rms_norm_residual_cpu(KernelLibrary& kernels) {
  add<float>(kernels);
  add<BFloat16>(kernels);
  add<Float16>(kernels);
}

}  // namespace tileweave

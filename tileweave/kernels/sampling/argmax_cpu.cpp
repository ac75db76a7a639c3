// Argmax on the emulated device.
#include "tileweave/kernels/sampling/sampling_cpu.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tileweave/kernels/sampling/argmax_args.h"
#include "tileweave/kernels/sampling/sampling_row.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

using Operands = ArgmaxOperands;

/// The largest of the parts that `num_parts` works found for row `row` of their tile, in ascending
/// columns: only a larger one takes the place of an earlier one.
std::int32_t last_word(const ArgmaxArgs& args, std::int64_t first_work, std::int64_t num_parts,
                       std::int64_t row) {
  ArgmaxPart best{0, -1};
  for (std::int64_t w = first_work; w < first_work + num_parts; ++w) {
    const ArgmaxPart part = args.parts[w * args.tile_m + row];
    if (part.id >= 0 && (best.id < 0 || part.value > best.value)) best = part;
  }
  return std::max(best.id, 0);
}

void argmax_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  const auto& args = *reinterpret_cast<const ArgmaxArgs*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<Operands::kSlots>*>(context_bytes);
  SyncCta<AtomicsCpu, Operands::kSlots> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  const std::int64_t splits = args.tiles_n();
  std::vector<ArgmaxPart> found(static_cast<std::size_t>(args.tile_m));

  for (std::int64_t at = lane.block_index(); at < args.num_works(); at += args.num_blocks) {
    const std::int64_t work = sync.remap(at);
    const std::int64_t m = args.row_tile(work), n = args.col_tile(work);
    const Ready ready = sync.wait_input(Operands::kSlotLogits, {m, n});
    if (!ready) return;
    const MatrixView<const float> logits(args.logits.get(ready), args.cols, Operands::kLogits,
                                         lane.checker());
    const std::int64_t rows = std::min(args.tile_m, args.rows - m * args.tile_m);
    const std::int64_t col = n * args.tile_n;
    const std::int64_t cols = std::min(args.tile_n, args.cols - col);
    for (std::int64_t i = 0; i < rows; ++i) {
      found[static_cast<std::size_t>(i)] = argmax_of(logits.row(m * args.tile_m + i, col, cols),
                                                     cols, static_cast<std::int32_t>(col));
    }
    if (splits > 1) {
      std::copy_n(found.begin(), rows, args.parts + work * args.tile_m);
      if (!sync.arrive_last(m, static_cast<std::uint32_t>(splits))) continue;
    }
    const TensorView<std::int32_t> ids(args.ids.get(), {args.rows}, Operands::kIds, lane.checker());
    std::int32_t* to = ids.run({m * args.tile_m}, rows);
    for (std::int64_t i = 0; i < rows; ++i) {
      to[i] = splits > 1 ? last_word(args, m * splits, splits, i)
                         : std::max(found[static_cast<std::size_t>(i)].id, 0);
    }
    sync.signal_output(Operands::kSlotIds, {m});
  }
}

}  // namespace

void add_argmax_cpu(KernelLibrary& kernels) {
  kernels.add({.name = kArgmaxKernel, .num_sync_slots = Operands::kSlots, .cpu = argmax_cpu});
}

}  // namespace tileweave

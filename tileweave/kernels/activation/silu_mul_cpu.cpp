// SiLU-mul on the emulated device: a row of the work's tile at a time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tileweave/kernels/activation/silu_mul_row-inl.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tileweave/kernels/activation/silu_mul_row-inl.h"

#include <cstddef>
#include <cstdint>

#include "tileweave/kernels/activation/silu_mul.h"
#include "tileweave/kernels/activation/silu_mul_args.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

HWY_EXPORT(silu_mul_row);

void silu_mul_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  using Operands = SiluMulOperands;
  const auto& args = *reinterpret_cast<const SiluMulArgs<float>*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<Operands::kSlots>*>(context_bytes);
  SyncCta<AtomicsCpu, Operands::kSlots> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;

  const std::int64_t cols = args.tiles.shape[1];
  for (std::int64_t at = lane.block_index(); at < args.tiles.count(); at += args.num_blocks) {
    const Coord tile = args.tiles.coord(sync.remap(at));
    const auto wait = [&](int part) {
      return sync.wait_input(Operands::kSlotGateUp, SiluMulInput::tile(args.tiles, tile, part));
    };
    if (!wait(0)) return;
    const Ready ready = wait(1);
    if (!ready) return;
    const MatrixView<const float> gate_up(args.gate_up.get(ready), 2 * cols, Operands::kGateUp,
                                          lane.checker());
    const MatrixView<float> out(args.out.get(), cols, Operands::kOut, lane.checker());
    const Box box = args.tiles.box(tile);
    const std::int64_t first = box.begin[1];
    const std::int64_t count = box.size[1];
    for (std::int64_t i = box.begin[0]; i < box.begin[0] + box.size[0]; ++i) {
      HWY_DYNAMIC_DISPATCH(silu_mul_row)
      (gate_up.row(i, first, count), gate_up.row(i, cols + first, count), out.row(i, first, count),
       count);
    }
    sync.signal_output(Operands::kSlotOut, tile);
  }
}

}  // namespace

void add_activation_cpu(KernelLibrary& kernels) {
  kernels.add({.name = silu_mul_kernel_name(DType::kF32),
               .num_sync_slots = SiluMulOperands::kSlots,
               .cpu = silu_mul_cpu});
}

}  // namespace tileweave

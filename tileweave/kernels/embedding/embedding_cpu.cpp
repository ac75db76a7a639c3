// Embedding on the emulated device: a piece of a table row at a time, unpacked to fp32.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tileweave/kernels/embedding/embedding.h"
#include "tileweave/kernels/embedding/embedding_args.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

template <class T>
void embedding_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  using Operands = EmbeddingOperands;
  const auto& args = *reinterpret_cast<const EmbeddingArgs<T, float>*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<Operands::kSlots>*>(context_bytes);
  SyncCta<AtomicsCpu, Operands::kSlots> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;

  const Shape& shape = args.tiles.shape;
  for (std::int64_t at = lane.block_index(); at < args.tiles.count(); at += args.num_blocks) {
    const Coord tile = args.tiles.coord(sync.remap(at));
    Ready ready = sync.wait_input(Operands::kSlotIds, {tile[0]});
    if (!ready) return;
    const TensorView<const std::int32_t> ids(args.ids.get(ready), {shape[0]}, Operands::kIds,
                                             lane.checker());
    if (args.table_is_produced()) {
      ready = sync.wait_input(Operands::kSlotTable, {0, tile[1]});
      if (!ready) return;
    }
    const MatrixView<const T> table(args.table(ready), shape[1], Operands::kTable, lane.checker());
    const MatrixView<float> out(args.out.get(), shape[1], Operands::kOut, lane.checker());
    const Box box = args.tiles.box(tile);
    const std::int64_t first = box.begin[1];
    const std::int64_t count = box.size[1];
    for (std::int64_t i = box.begin[0]; i < box.begin[0] + box.size[0]; ++i) {
      const std::int64_t id = *ids.run({i}, 1);
      float* to = out.row(i, first, count);
      if (id < 0 || id >= args.table_rows) {
        std::fill_n(to, count, 0.0F);
        continue;
      }
      const T* from = table.row(id, first, count);
      for (std::int64_t j = 0; j < count; ++j) to[j] = to_float(from[j]);
    }
    sync.signal_output(Operands::kSlotOut, tile);
  }
}

template <class T>
void add(KernelLibrary& kernels) {
  kernels.add({.name = embedding_kernel_name(kDTypeOf<T>, DType::kF32),
               .num_sync_slots = EmbeddingOperands::kSlots,
               .cpu = embedding_cpu<T>});
}

}  // namespace

void add_embedding_cpu(KernelLibrary& kernels) {
  add<float>(kernels);
  add<BFloat16>(kernels);
  add<Float16>(kernels);
}

}  // namespace tileweave

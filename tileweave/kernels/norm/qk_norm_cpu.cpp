// QK-norm on the emulated device: heads one after the other, each a row of rms_norm.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tileweave/kernels/norm/qk_norm.h"
#include "tileweave/kernels/norm/qk_norm_args.h"
#include "tileweave/kernels/norm/rms_norm_row.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

template <class W>
std::vector<float> padded_weight(const Stable<W>& weight, std::int64_t head_dim, int operand,
                                 AccessChecker* checker) {
  std::vector<float> padded(static_cast<std::size_t>(padded_row(head_dim)));
  const TensorView<const W> from(weight.get(), {head_dim}, operand, checker);
  unpack_row(from.run({0}, head_dim), head_dim, padded.data());
  return padded;
}

template <class W>
void qk_norm_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  using Operands = QkNormOperands;
  const auto& args = *reinterpret_cast<const QkNormArgs<W>*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<Operands::kSlots>*>(context_bytes);
  SyncCta<AtomicsCpu, Operands::kSlots> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;

  const std::int64_t dim = args.head_dim;
  const std::int64_t cols = args.tiles.shape[1];
  std::vector<float> q_weight;
  std::vector<float> k_weight;
  std::vector<float> head(static_cast<std::size_t>(padded_row(dim)));

  for (std::int64_t at = lane.block_index(); at < args.tiles.count(); at += args.num_blocks) {
    const std::int64_t work = sync.remap(at);
    if (at == lane.block_index()) {
      // The weights are constant: read once, before the first wait.
      q_weight = padded_weight(args.q_weight, dim, Operands::kQWeight, lane.checker());
      k_weight = padded_weight(args.k_weight, dim, Operands::kKWeight, lane.checker());
    }
    const Coord tile = args.tiles.coord(work);
    const Ready ready = sync.wait_input(Operands::kSlotQkv, tile);
    if (!ready) return;
    const MatrixView<const float> qkv(args.qkv.get(ready), cols, Operands::kQkv, lane.checker());
    const MatrixView<float> out(args.out.get(), cols, Operands::kOut, lane.checker());
    const Box box = args.tiles.box(tile);
    for (std::int64_t i = box.begin[0]; i < box.begin[0] + box.size[0]; ++i) {
      for (std::int64_t j = box.begin[1]; j < box.begin[1] + box.size[1]; j += dim) {
        const std::int64_t index = j / dim;
        unpack_row(qkv.row(i, j, dim), dim, head.data());
        if (index < args.heads) {
          rms_norm_row_cpu(head.data(), q_weight.data(), dim, args.eps);
        } else if (index < args.heads + args.kv_heads) {
          rms_norm_row_cpu(head.data(), k_weight.data(), dim, args.eps);
        }
        std::copy_n(head.data(), dim, out.row(i, j, dim));
      }
    }
    sync.signal_output(Operands::kSlotOut, tile);
  }
}

template <class W>
void add(KernelLibrary& kernels) {
  kernels.add({.name = qk_norm_kernel_name(kDTypeOf<W>),
               .num_sync_slots = QkNormOperands::kSlots,
               .cpu = qk_norm_cpu<W>});
}

}  // namespace

void add_qk_norm_cpu(KernelLibrary& kernels) {
  add<float>(kernels);
  add<BFloat16>(kernels);
  add<Float16>(kernels);
}

}  // namespace tileweave

// Routing on the emulated device: a row of the work's tile at a time.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tileweave/core/error.h"
#include "tileweave/kernels/routing/routing.h"
#include "tileweave/kernels/routing/routing_args.h"
#include "tileweave/kernels/routing/routing_row.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

using Operands = RoutingOperands;

bool is_padding(const RoutingArgs& args, std::int64_t row, AccessChecker* checker) {
  if (args.sequences_operand < 0) return false;
  return *TensorView<const std::int32_t>(args.sequences.get(), {args.rows}, args.sequences_operand,
                                         checker)
              .run({row}, 1) < 0;
}

void routing_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  const auto& args = *reinterpret_cast<const RoutingArgs*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<Operands::kSlots>*>(context_bytes);
  SyncCta<AtomicsCpu, Operands::kSlots> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  const std::int64_t k = args.rule.top_k;
  RoutingRow router(args.rule, args.experts);
  const float* bias = nullptr;
  if (args.bias_operand >= 0) {
    bias =
        TensorView<const float>(args.bias.get(), {args.experts}, args.bias_operand, lane.checker())
            .run({0}, args.experts);
  }

  for (std::int64_t at = lane.block_index(); at < args.num_works(); at += args.num_blocks) {
    const std::int64_t work = sync.remap(at);
    const Ready ready = sync.wait_input(Operands::kSlotLogits, {work, 0});
    if (!ready) return;
    const MatrixView<const float> logits(args.logits.get(ready), args.experts, Operands::kLogits,
                                         lane.checker());
    const MatrixView<std::int32_t> ids(args.ids.get(), k, Operands::kIds, lane.checker());
    const MatrixView<float> weights(args.weights.get(), k, Operands::kWeights, lane.checker());
    const std::int64_t end = std::min(args.rows, (work + 1) * args.tile_m);
    for (std::int64_t i = work * args.tile_m; i < end; ++i) {
      std::int32_t* row_ids = ids.row(i, 0, k);
      float* row_weights = weights.row(i, 0, k);
      if (is_padding(args, i, lane.checker())) {
        std::fill_n(row_ids, k, -1);
        std::fill_n(row_weights, k, 0.0F);
        continue;
      }
      const float* row = logits.row(i, 0, args.experts);
      const std::int64_t bad = router.route(row, bias, row_ids, row_weights);
      if (bad < 0) continue;
      throw Error("route token " + std::to_string(i), "scores that are numbers",
                  (std::isnan(row[bad]) ? "NaN" : "+inf") + std::string(" for expert ") +
                      std::to_string(bad));
    }
    sync.signal_output(Operands::kSlotIds, {work, 0});
    sync.signal_output(Operands::kSlotWeights, {work, 0});
  }
}

}  // namespace

void add_routing_cpu(KernelLibrary& kernels) {
  kernels.add({.name = kRoutingKernel, .num_sync_slots = Operands::kSlots, .cpu = routing_cpu});
}

}  // namespace tileweave

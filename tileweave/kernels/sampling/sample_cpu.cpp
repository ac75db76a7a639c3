// Sampling on the emulated device: a work gathers its rows as column tiles of the logits arrive,
// then filters and draws row by row.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tileweave/kernels/sampling/sample_args.h"
#include "tileweave/kernels/sampling/sampling_cpu.h"
#include "tileweave/kernels/sampling/sampling_row.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

using Operands = SampleOperands;

SamplingRowParams read_params(const SampleArgs& args, std::int64_t row, AccessChecker* checker) {
  const auto of_row = [&]<class T>(const Stable<T>& tensor, int operand) {
    return *TensorView<const T>(tensor.get(), {args.rows}, operand, checker).run({row}, 1);
  };
  const MatrixView<const std::int32_t> seeds(args.seed.get(), 2, Operands::kSeed, checker);
  const MatrixView<const std::int32_t> history(args.history.get(), args.max_history,
                                               Operands::kHistory, checker);
  const std::int32_t* seed = seeds.row(row, 0, 2);
  const std::int64_t length =
      std::clamp(std::int64_t{of_row(args.history_length, Operands::kHistoryLength)},
                 std::int64_t{0}, args.max_history);
  return {.temperature = of_row(args.temperature, Operands::kTemperature),
          .top_k = of_row(args.top_k, Operands::kTopK),
          .top_p = of_row(args.top_p, Operands::kTopP),
          .min_p = of_row(args.min_p, Operands::kMinP),
          .repetition_penalty = of_row(args.repetition_penalty, Operands::kRepetitionPenalty),
          .seed_low = static_cast<std::uint32_t>(seed[0]),
          .seed_high = static_cast<std::uint32_t>(seed[1]),
          .position = of_row(args.position, Operands::kPosition),
          .history = {history.row(row, 0, args.max_history), static_cast<std::size_t>(length)}};
}

void sample_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  const auto& args = *reinterpret_cast<const SampleArgs*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<Operands::kSlots>*>(context_bytes);
  SyncCta<AtomicsCpu, Operands::kSlots> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  std::vector<SamplingRow> rows(static_cast<std::size_t>(args.tile_m), SamplingRow(args.cols));

  for (std::int64_t at = lane.block_index(); at < args.num_works(); at += args.num_blocks) {
    const std::int64_t work = sync.remap(at);
    const std::int64_t first = work * args.tile_m;
    const std::int64_t count = std::min(args.tile_m, args.rows - first);
    for (std::int64_t n = 0; n < args.tiles_n(); ++n) {
      const Ready ready = sync.wait_input(Operands::kSlotLogits, {work, n});
      if (!ready) return;
      const MatrixView<const float> logits(args.logits.get(ready), args.cols, Operands::kLogits,
                                           lane.checker());
      const std::int64_t col = n * args.tile_n;
      const std::int64_t cols = std::min(args.tile_n, args.cols - col);
      for (std::int64_t i = 0; i < count; ++i) {
        rows[static_cast<std::size_t>(i)].set(col, logits.row(first + i, col, cols), cols);
      }
    }
    const TensorView<std::int32_t> ids(args.ids.get(), {args.rows}, Operands::kIds, lane.checker());
    std::int32_t* to = ids.run({first}, count);
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] =
          rows[static_cast<std::size_t>(i)].sample(read_params(args, first + i, lane.checker()));
    }
    sync.signal_output(Operands::kSlotIds, {work});
  }
}

}  // namespace

void add_sample_cpu(KernelLibrary& kernels) {
  kernels.add({.name = kSampleKernel, .num_sync_slots = Operands::kSlots, .cpu = sample_cpu});
}

}  // namespace tileweave

// A work of attention waits for every tile that it declares, needed or not, before it signals: what
// the plan's proofs that a buffer is free again rest on.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tests/kernels/attention/attention_step.h"
#include "tests/kernels/attention/step_tensors.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/kernels/attention/paged_attention_args.h"
#include "tileweave/sync/context.h"

namespace tileweave {
namespace {

/// Remembers what the current work waited for, and how much of that before its signal.
class WaitsLane final : public CpuLane {
 public:
  void start_block(std::int64_t block) {
    block_ = block;
    waits_.clear();
    signals_ = 0;
  }
  /// (slot, tile) pairs waited for before the one signal.
  const std::multiset<std::pair<int, std::int64_t>>& waits() const { return waits_; }
  int signals() const { return signals_; }

  int lane() const override { return 0; }
  int num_lanes() const override { return 1; }
  std::int64_t block_index() const override { return block_; }
  std::uint32_t sm_index() const override { return 0; }
  std::uint64_t now_ns() const override { return 1; }
  bool barrier_or(bool value) override { return value; }
  std::uint32_t broadcast(std::uint32_t value) override { return value; }
  void pause(const std::uint32_t* /*word*/, const WaitSite& /*site*/) override {}
  void wake(const std::uint32_t* /*word*/) override {}
  void launch_dependents() override {}
  void grid_dependency_wait() override {}
  void on_begin() override {}
  void on_work(std::int64_t /*work*/) override {}
  void on_wait(int slot, const Coord& tile) override {
    if (signals_ == 0) waits_.insert({slot, tile[0] * kManyGroups + tile[1]});
  }
  void on_signal(int /*slot*/, const Coord& /*tile*/) override { ++signals_; }
  AccessChecker* checker() override { return nullptr; }

  static constexpr std::int64_t kManyGroups = 1000;

 private:
  std::int64_t block_ = 0;
  std::multiset<std::pair<int, std::int64_t>> waits_;
  int signals_ = 0;
};

TEST(PagedAttentionWaits, AreAllOfTheDeclaredTilesOnceAndBeforeTheSignal) {
  // Padding in front of and behind rows that need little of what lies before them.
  AttentionStep step({4, 2, 8}, 4, {{1, 3, 2}, {2, 70, 1}, {3, 0, 5}}, 4);
  const StepTensors tensors(step);
  KernelLibrary kernels;
  add_attention_cpu(kernels);
  for (const std::int64_t tile_m : {1, 2, 3, 8, 100}) {
    const NodeSpec node = paged_attention(
        tensors.table, {.head_dim = 8, .page_size = 4, .tile_m = tile_m}, tensors.at);
    std::vector<float> out(step.q.size());
    const std::vector<std::byte> args = node.make_args({.operands = step.addresses(out)});
    std::uint32_t abort = 0;
    SyncContext<PagedAttentionOperands::kSlots> context{};
    context.header.abort = &abort;
    context.header.num_works = node.num_works;
    WaitsLane lane;
    for (std::int64_t work = 0; work < node.num_works; ++work) {
      lane.start_block(work);
      kernels.find(node.kernel)
          .cpu(lane, args.data(), reinterpret_cast<const std::byte*>(&context));
      std::multiset<std::pair<int, std::int64_t>> declared;
      for (const OperandSpec& operand : node.operands) {
        if (operand.sync_slot < 0 || operand.access == Access::kWrite) continue;
        for (const std::int64_t tile :
             kernel_tiles_of_work(operand, tensors.table[operand.tensor], work)) {
          const Coord at = operand.kernel_tiles.coord(tile);
          declared.insert({operand.sync_slot, at[0] * WaitsLane::kManyGroups + at[1]});
        }
      }
      EXPECT_EQ(lane.waits(), declared) << "tile_m " << tile_m << ", work " << work;
      EXPECT_EQ(lane.signals(), 1);
    }
  }
}

}  // namespace
}  // namespace tileweave

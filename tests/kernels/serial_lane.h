// Runs a node's blocks one after the other on the calling thread, without any device: the kernel's
// arithmetic and its declared boxes can then be tested on their own.
//
// Tensors are untiled (nothing to wait for); the node's counters and scratch are given. Every
// access through a checking view must lie in the kernel tiles that the running work declares,
// produced operands must have been waited for, and the result must not be written after its signal;
// the first violation throws Error.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/plan/node.h"
#include "tileweave/runtime/kernel_library.h"
#include "tileweave/sync/context.h"

namespace tileweave {

class SerialLane final : public CpuLane, public AccessChecker {
 public:
  SerialLane(const NodeSpec& node, const TensorTable& tensors) : node_(node), tensors_(tensors) {}

  void start_block(std::int64_t block) { block_ = block; }

  int lane() const override { return 0; }
  int num_lanes() const override { return 1; }
  std::int64_t block_index() const override { return block_; }
  std::uint32_t sm_index() const override { return 0; }
  std::uint64_t now_ns() const override { return 1; }
  bool barrier_or(bool value) override { return value; }
  std::uint32_t broadcast(std::uint32_t value) override { return value; }
  void pause(const std::uint32_t* /*word*/, const WaitSite& /*site*/) override {
    throw Error("run blocks in order", "no wait", "a wait for an untiled tensor");
  }
  void wake(const std::uint32_t* /*word*/) override {}
  void launch_dependents() override {}
  void grid_dependency_wait() override {}
  void on_begin() override {}
  void on_work(std::int64_t work) override {
    work_ = work;
    waited_ = false;
    ++works_run_;
  }
  void on_wait(int /*operand*/, const Coord& /*ktile*/) override { waited_ = true; }
  void on_signal(int /*operand*/, const Coord& /*ktile*/) override { ++signals_; }
  AccessChecker* checker() override { return this; }

  void on_read(int operand, const Box& box) override { judge(operand, box, Access::kRead); }
  void on_write(int operand, const Box& box) override { judge(operand, box, Access::kWrite); }

  std::int64_t signals() const { return signals_; }
  std::int64_t works_run() const { return works_run_; }

 private:
  void judge(int operand, const Box& box, Access access) const {
    const OperandSpec& spec = node_.operands[static_cast<std::size_t>(operand)];
    const Tensor& tensor = tensors_[spec.tensor];
    const std::string what = "access " + to_string(box) + " of `" + tensor.spec.name + "`";
    require(spec.access == access, what.c_str(), "the declared kind of access");
    require(waited_ || spec.when == ReadTime::kPrologue, what.c_str(), "a wait before it");
    const TileSet tiles = kernel_tiles_of(spec, tensor);
    const std::vector<std::int64_t> declared = kernel_tiles_of_work(spec, tensor, work_);
    // A box may span several declared tiles: all that it meets must be declared.
    tiles.for_each_meeting(box, [&](std::int64_t tile) {
      const bool prologue = work_ < 0;
      if (prologue || std::count(declared.begin(), declared.end(), tile) == 0) {
        if (prologue && spec.when == ReadTime::kPrologue) return;
        throw Error(what, "kernel tiles declared by work " + std::to_string(work_),
                    "tile " + std::to_string(tile));
      }
    });
  }

  const NodeSpec& node_;
  const TensorTable& tensors_;
  std::int64_t block_ = 0;
  std::int64_t work_ = -1;
  bool waited_ = false;
  std::int64_t signals_ = 0;
  std::int64_t works_run_ = 0;
};

/// Runs `node` over `addresses` (scratch is provided) and returns the lane for its counts.
template <int kSlots>
SerialLane run_serially(const NodeSpec& node, const TensorTable& tensors, KernelLibrary& kernels,
                        Addresses addresses) {
  const auto num_counters = std::max<std::size_t>(node.counter.arrivals.size(), 1);
  std::vector<std::uint32_t> counters(num_counters, 0xfffffffdU);  // wraps while the node runs
  std::vector<std::uint32_t> bases = counters;
  // A wrong index into the partial sums shows as NaN.
  std::vector<float> scratch(node.scratch_bytes / sizeof(float),
                             std::numeric_limits<float>::quiet_NaN());
  addresses.scratch = scratch.data();
  std::uint32_t abort = 0;

  SyncContext<kSlots> context{};
  context.header.abort = &abort;
  context.header.counter = {counters.data(), bases.data(), 1};
  context.header.num_works = node.num_works;
  context.header.order_form = node.order.form();
  context.header.order_offset = node.order.offset();
  context.header.order = node.order.works().data();

  const std::vector<std::byte> args = node.make_args(addresses);
  const KernelImpl& kernel = kernels.find(node.kernel);
  SerialLane lane(node, tensors);
  for (std::int64_t block = 0; block < blocks_of(node); ++block) {
    lane.start_block(block);
    kernel.cpu(lane, args.data(), reinterpret_cast<const std::byte*>(&context));
  }
  for (std::size_t i = 0; i < node.counter.arrivals.size(); ++i) {
    require(counters[i] - bases[i] == node.counter.arrivals[i], "run blocks in order",
            "as many arrivals on each counter as declared", std::to_string(counters[i] - bases[i]));
  }
  return lane;
}

}  // namespace tileweave

// Rig: an emulated device, a queue and hand-made synchronisation contexts, for the device's tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tileweave/runtime/device.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave::test {

/// Semaphores of one tensor; all data tiles share one base.
struct Semaphores {
  explicit Semaphores(std::int64_t tiles, std::uint32_t start = 0)
      : words(static_cast<std::size_t>(tiles), start), base(start) {}
  std::vector<std::uint32_t> words;
  std::uint32_t base;
};

template <int N>
using Context = SyncContext<N>;
template <int N>
using Cta = SyncCta<AtomicsCpu, N>;

/// A kernel over a SyncContext<N>, with the context already in its type.
template <int N>
using Kernel = std::function<void(CpuLane& lane, const Context<N>& context)>;

class Rig {
 public:
  explicit Rig(const CpuOptions& options = {}, std::int32_t num_streams = 2)
      : device_(open_cpu_device(options)), queue_(device_->open_queue(num_streams)) {}
  ~Rig() { queue_.reset(); }

  Device& device() { return *device_; }
  LaunchQueue& queue() { return *queue_; }
  void close_queue() { queue_.reset(); }
  std::uint32_t abort_word() const { return abort_; }
  const HangReport& report() const { return report_; }

  Semaphores& semaphores(std::int64_t tiles, std::uint32_t start = 0) {
    return semaphores_.emplace_back(tiles, start);
  }

  /// An operand over a grid: waits need `target` arrivals on every data tile.
  static OperandSlot operand(Semaphores& s, const Shape& shape, const Coord& ktile,
                             const Coord& dtile, std::uint32_t target = 0) {
    OperandSlot op{};
    op.sync.words = s.words.data();
    op.sync.base = &s.base;
    op.tiles.num_axes = shape.num_axes;
    for (int a = 0; a < shape.num_axes; ++a) {
      op.tiles.shape[a] = shape[a];
      op.tiles.ktile[a] = ktile[a];
      op.tiles.dtile[a] = dtile[a];
      op.tiles.producer_ktile[a] = ktile[a];
    }
    op.sync.target = target;
    op.tiles.word_stride = 1;
    op.tiles.base_stride = 0;
    if (op.tiles.num_axes == 1) op.sync.flags |= OperandSync::kOneAxis;
    return op;
  }

  template <int N>
  Context<N> context(NodeId node, std::int64_t num_works) {
    Context<N> context{};
    context.header.abort = &abort_;
    context.header.report = &report_;
    context.header.node = static_cast<std::uint32_t>(node);
    context.header.num_works = num_works;
    context.header.order_form = OrderForm::kIdentity;
    return context;
  }

  /// A launch of a kernel without a context.
  Launch plain(NodeId node, const std::string& name, std::int64_t blocks,
               std::function<void(CpuLane&)> kernel, int lanes = 1) {
    KernelImpl& impl = kernels_.emplace_back();
    impl.name = name;
    impl.cpu_lanes = lanes;
    impl.cpu = [kernel = std::move(kernel)](CpuLane& lane, const std::byte*, const std::byte*) {
      kernel(lane);
    };
    Launch launch;
    launch.node = node;
    launch.name = name;
    launch.kernel = &impl;
    launch.num_blocks = launch.num_works = blocks;
    launch.abort = &abort_;
    return launch;
  }

  template <int N>
  Launch launch(NodeId node, const std::string& name, std::int64_t blocks,
                const Context<N>& context, Kernel<N> kernel, int lanes = 1) {
    Launch result = plain(node, name, blocks, nullptr, lanes);
    KernelImpl& impl = kernels_.back();
    impl.num_sync_slots = N;
    impl.cpu = [kernel = std::move(kernel)](CpuLane& lane, const std::byte*,
                                            const std::byte* bytes) {
      kernel(lane, *reinterpret_cast<const Context<N>*>(bytes));
    };
    result.context.resize(sizeof(context));
    std::memcpy(result.context.data(), &context, sizeof(context));
    return result;
  }

 private:
  std::uint32_t abort_ = 0;
  HangReport report_{};
  std::deque<Semaphores> semaphores_;
  std::deque<KernelImpl> kernels_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<LaunchQueue> queue_;
};

/// Launch on `stream`, after `after`.
inline Launch on(Launch launch, std::int32_t stream, std::vector<Dependency> after = {}) {
  launch.stream = stream;
  launch.after = std::move(after);
  return launch;
}

}  // namespace tileweave::test

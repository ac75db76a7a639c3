// ModelEngine: the same blocks under a virtual clock, as discrete events on one thread.
//
// A block's time is its node's Cost plus the described device's overheads: the prologue of a work
// is charged before its first wait, its cost between the end of its last wait and its first signal
// (or its end). Blocks of the earliest launch go first, each to the lowest SM with room, in index
// order; everything that happens at one tick happens before a block is admitted at that tick. There
// is no cache and no contention beyond sharing an SM. Ranks schedules; never a performance result.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "tileweave/runtime/cpu/described_device.h"
#include "tileweave/runtime/cpu/serial_engine.h"

namespace tileweave::cpu {

class ModelEngine final : public SerialEngine {
 public:
  ModelEngine(const CpuOptions& options, const DeviceLimits& limits,
              const DescribedDevice& described);
  ~ModelEngine() override;

  double ticks() const override { return now(); }

 protected:
  bool step() override;
  void lane_stopped(BlockLane& lane) override;
  void look_at_all() override;
  std::uint64_t now_ns(BlockLane& lane) override;
  void at_hook(BlockLane& lane, LaneHook hook, std::int64_t value) override;

 private:
  struct Event {
    double at;
    std::int64_t order;  // of scheduling, among events of one tick
    BlockLane* lane;
    friend bool operator<(const Event& a, const Event& b) {
      return a.at != b.at ? a.at < b.at : a.order < b.order;
    }
  };
  /// Lanes computing on one SM, when they share it: ticks of work left at `since`.
  struct Load {
    struct Part {
      BlockLane* lane;
      double left;
    };
    std::vector<Part> parts;
    double since = 0;
  };

  double now() const { return now_.load(std::memory_order_relaxed); }
  bool wake_reached();
  bool admit_earliest();
  bool pass_time();
  void schedule(double after, BlockLane& lane);
  // Sharing of an SM.
  static double slowdown(const Load& load);
  void settle(Load& load) const;
  double next_end(const Load& load) const;
  // Charging, on the lane's fiber.
  void touch(BlockLane& lane) const;
  void charge_cost(BlockLane& lane) const;
  void charge_block(BlockLane& lane) const;
  static bool has_words(const BlockLane& lane, std::int64_t slot);

  DescribedDevice described_;
  std::atomic<double> now_{0};  // read on fibers
  std::int64_t num_scheduled_ = 0;
  bool admitting_ = false;
  std::deque<BlockLane*> ready_;
  std::vector<BlockLane*> waiting_;
  std::set<Event> events_;
  std::vector<Load> loads_;  // per SM
};

}  // namespace tileweave::cpu

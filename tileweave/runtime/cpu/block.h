// Block and BlockLane: one resident block of the emulated device and its lanes, each a fiber.
//
// A block belongs to the thread (the SM or the single-threaded engine) that made it. A lane runs
// until it stops: it waits for a word, for the other lanes or for a grid dependency, it sleeps on
// the virtual clock, or it gives others a chance to run. Its engine then reads `stop()` and resumes
// it when it sees fit. Lane code touches nothing that a scheduler writes, except through atomics,
// so that no order leaks from one fiber to another (sanitizer.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tileweave/runtime/cpu/access_judge.h"
#include "tileweave/runtime/cpu/fiber.h"
#include "tileweave/runtime/cpu/launch_state.h"
#include "tileweave/runtime/device.h"
#include "tileweave/sync/cpu_lane.h"

namespace tileweave::cpu {

class Block;
class BlockLane;

enum class StopKind : std::uint8_t {
  kYield,    // ready again at once
  kWord,     // pause(): a word is short of its goal
  kBarrier,  // rendezvous of the block's lanes
  kGrid,     // griddepcontrol.wait
  kSleep,    // model: `ticks` of virtual time pass
  kCompute   // model: `ticks` of an SM's work, which blocks may share
};

/// Why a lane is not running.
struct LaneStop {
  StopKind kind = StopKind::kYield;
  const std::uint32_t* word = nullptr;
  WaitSite site = {};
  std::uint32_t seen = 0;
  std::uint64_t barrier_round = 0;
  double ticks = 0;
};

enum class LaneHook : std::uint8_t {
  kBegin,
  kWork,
  kWait,
  kSignal,  // before the arrivals
  kAdded,   // after an arrival
  kArrive,  // cost-only model: before a partial result counts
  kStop,    // about to wait for something outside the block
  kEnd
};

/// What an engine adds to a lane; called on the lane's fiber, which it may suspend.
class LaneHost {
 public:
  virtual ~LaneHost() = default;
  virtual std::uint64_t now_ns(BlockLane& lane) = 0;
  /// `value`: the work (kWork) or the operand's slot (kWait, kSignal).
  virtual void at_hook(BlockLane& lane, LaneHook hook, std::int64_t value) = 0;
  /// The lane has returned. True: its block has become another one (Block::become), which the same
  /// fiber is to run.
  virtual bool took_next_block(BlockLane& /*lane*/) { return false; }
};

/// Thrown through a kernel to unwind it when its launch has no abort word that would end its wait.
struct Cancelled {};

class BlockLane final : public CpuLane {
 public:
  BlockLane(Block& block, int lane, FiberPool& pool);
  ~BlockLane() override;

  int lane() const override { return lane_; }
  int num_lanes() const override;
  std::int64_t block_index() const override;
  std::uint32_t sm_index() const override;
  std::uint64_t now_ns() const override;
  bool barrier_or(bool value) override;
  std::uint32_t broadcast(std::uint32_t value) override;
  void pause(const std::uint32_t* word, const WaitSite& site) override;
  void wake(const std::uint32_t* word) override;
  void launch_dependents() override;
  void grid_dependency_wait() override;
  void on_begin() override;
  void on_work(std::int64_t work) override;
  void on_wait(int operand, const Coord& ktile) override;
  void on_signal(int operand, const Coord& ktile) override;
  AccessChecker* checker() override { return judge_.get(); }

  // For hosts, on the lane's fiber.
  Block& block() { return block_; }
  void yield() { stop_for({.kind = StopKind::kYield}); }
  /// Lets virtual time pass; does nothing while the kernel is being unwound.
  void sleep(double ticks) { spend(StopKind::kSleep, ticks); }
  void compute(double ticks) { spend(StopKind::kCompute, ticks); }
  /// The model's account of the lane, kept by its host.
  struct Account {
    bool begun = false;
    bool touched = false;  // the current work's prologue has been charged
    bool cost_due = false;
    bool paused = false;  // in the current wait
    std::int64_t work = 0;
  } account;

  // For engines, off the fiber.
  void resume() { fiber_->resume(); }
  bool finished() const { return fiber_->finished(); }
  LaneStop stop() const;
  /// Whether it may go on, as far as the block and its grid dependencies decide. True for kWord.
  bool unblocked() const;
  /// What the kernel threw, or empty.
  const std::string& failure() const { return failure_; }

 private:
  friend class Block;
  static void entry(void* self);
  void run();
  void stop_for(const LaneStop& why);
  std::uint64_t arrivals_wanted(std::uint64_t round) const;
  void spend(StopKind kind, double ticks);
  void leave_if_cancelled() const;

  Block& block_;
  int lane_;
  std::uint64_t num_barriers_ = 0;
  LaneStop stop_;
  std::string failure_;
  std::unique_ptr<AccessJudge> judge_;
  FiberPool& pool_;
  std::unique_ptr<Fiber> fiber_;
};

class Block {
 public:
  struct Setup {
    LaunchState* launch;
    LaneHost* host;
    std::int64_t index;
    std::uint32_t sm;
    int num_lanes;
    CheckViews check_views;
  };
  /// Built by the nursery of `pool`; throws Error without memory for stacks.
  static std::unique_ptr<Block> make(FiberPool& pool, const Setup& setup);

  LaunchState& launch() const { return *launch_; }
  std::int64_t index() const { return index_; }
  std::uint32_t sm() const { return sm_; }
  int num_lanes() const { return num_lanes_; }
  BlockLane& lane(int i) { return *lanes_[static_cast<std::size_t>(i)]; }

  /// Turns a block of one lane, which has returned without a failure, into another such block.
  void become(LaunchState& launch, std::int64_t index);

  /// Unwinds every lane at its next stop.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  void at_hook(BlockLane& lane, LaneHook hook, std::int64_t value) {
    host_->at_hook(lane, hook, value);
  }
  bool triggered() const { return triggered_.load(std::memory_order_relaxed); }

  // Scheduler's bookkeeping.
  std::size_t place = 0;  // among the resident blocks
  int lanes_left = 0;
  bool trigger_counted = false;

 private:
  friend class BlockLane;
  struct Order;
  static void fill(void* order);
  Block(FiberPool& pool, LaunchState* launch, LaneHost* host, std::int64_t index, std::uint32_t sm,
        int num_lanes, CheckViews check_views);

  LaunchState* launch_;
  LaneHost* host_;
  std::int64_t index_;
  std::uint32_t sm_;
  int num_lanes_;
  CheckViews check_views_;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> triggered_{false};
  std::atomic<int> lanes_returned_{0};
  // Barrier: arrivals at even and at odd rounds since the block began, and the values of this and
  // the next round. A lane that learns of one round must not learn of another lane's arrival at the
  // next: that would hide a missing barrier.
  std::array<std::atomic<std::uint64_t>, 2> arrived_{};
  std::array<std::atomic<std::uint32_t>, 2> any_{};
  std::atomic<std::uint32_t> broadcast_{0};
  std::vector<std::unique_ptr<BlockLane>> lanes_;
};

}  // namespace tileweave::cpu

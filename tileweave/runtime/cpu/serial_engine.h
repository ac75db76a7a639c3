// SerialEngine: what the two single-threaded ways (explore, model) share.
//
// Nothing runs while the host enqueues; the thread that waits (synchronize, wait_until_completed)
// runs everything, one lane at a time, so a run is a function of what was enqueued and of the
// subclass's choices alone. A step that finds nothing to do while launches are in flight is a
// deadlock: it is recorded by name, the abort words are set and the blocks drain.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/runtime/cpu/engine.h"
#include "tileweave/runtime/cpu/sm.h"

namespace tileweave::cpu {

class SerialEngine : public Engine, public LaneHost {
 public:
  SerialEngine(const CpuOptions& options, const DeviceLimits& limits,
               std::function<double(Release)> latency = nullptr);

  void submit(const std::shared_ptr<LaunchState>& state,
              const std::vector<ResolvedDependency>& dependencies) override;
  std::int64_t num_completed() override { return board_.num_completed(); }
  void wait_for_count(std::int64_t count) override;
  void wait_all() override;
  Deadlock deadlock() const override { return deadlock_; }

 protected:
  /// One scheduling decision. False: nothing can make progress.
  virtual bool step() = 0;
  /// A lane has stopped and will go on later; `lane.stop()` says why.
  virtual void lane_stopped(BlockLane& lane) = 0;
  /// A block has ended and left its SM.
  virtual void block_ended(std::uint32_t /*sm*/) {}
  /// Every waiting lane is worth another look (abort words were set).
  virtual void look_at_all() = 0;

  /// Block `index` of an open launch begins on `sm`, which has room. Its lanes are stopped lanes.
  void admit(LaunchState& state, std::uint32_t sm, std::int64_t index);
  /// Skips, calls or begins the next block; true when it needed no SM.
  bool admit_without_sm(LaunchState& state);
  void run(BlockLane& lane);
  /// For destructors of subclasses: lets every resident block leave.
  void abandon() noexcept;

  const DeviceLimits& limits() const { return limits_; }
  LaunchBoard& board() { return board_; }
  std::vector<Sm>& sms() { return sms_; }
  const std::vector<std::unique_ptr<Block>>& resident() const { return resident_; }
  bool draining() const { return draining_; }

 private:
  void advance();
  void drain();
  void finish(Block& block);
  Deadlock describe_deadlock() const;

  CpuOptions options_;
  DeviceLimits limits_;
  FiberPool pool_;
  LaunchBoard board_;
  std::vector<Sm> sms_;
  std::vector<std::unique_ptr<Block>> resident_;
  bool draining_ = false;
  std::optional<Error> error_;
  Deadlock deadlock_;
};

}  // namespace tileweave::cpu

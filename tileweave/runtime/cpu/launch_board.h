// LaunchBoard: which launches may begin blocks now, and which have completed.
//
// Pure bookkeeping for all three ways of running: an engine submits launches in the order in which
// the host enqueued them, says when blocks begin, trigger and end, and finds in `open()` the
// launches that have blocks left to begin. Not thread-safe: the engine holds its lock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tileweave/runtime/cpu/launch_state.h"

namespace tileweave::cpu {

struct ResolvedDependency {
  std::shared_ptr<LaunchState> on;
  Release release = Release::kCompleted;
};

class LaunchBoard {
 public:
  /// `latency`: ticks between an event and the blocks it lets begin, for the model.
  explicit LaunchBoard(std::function<double(Release)> latency = nullptr)
      : latency_(std::move(latency)) {}

  void submit(const std::shared_ptr<LaunchState>& state,
              const std::vector<ResolvedDependency>& dependencies);

  /// Launches with blocks that may begin, earliest enqueued first.
  const std::vector<LaunchState*>& open() const { return open_; }
  /// Everything that has not been retired, earliest first.
  const std::deque<std::shared_ptr<LaunchState>>& in_flight() const { return in_flight_; }

  /// The next block of an open launch begins: returns its index (in order of beginning).
  std::int64_t begin_block(LaunchState& state);
  /// A block of the launch called launch_dependents for the first time.
  void trigger_block(LaunchState& state);
  /// `triggered`: whether trigger_block was called for this block.
  void end_block(LaunchState& state, bool triggered);

  bool idle() const { return in_flight_.empty(); }
  /// launch() calls that completed with all before them completed too.
  std::int64_t num_completed() const { return num_completed_; }
  /// Launches opened or completed so far: a scheduler that sees the same number as before has
  /// nothing new to look at.
  std::int64_t num_events() const { return num_events_; }

  void set_time(double now) { now_ = now; }

 private:
  void block_by(LaunchState& state, std::vector<LaunchState*>& list);
  void release(std::vector<LaunchState*>& list, Release how);
  void open_launch(LaunchState& state);
  void complete(LaunchState& state);
  void retire();

  std::function<double(Release)> latency_;
  double now_ = 0;
  std::deque<std::shared_ptr<LaunchState>> in_flight_;
  std::vector<LaunchState*> open_;
  std::int64_t num_completed_ = 0;
  std::int64_t num_events_ = 0;
};

}  // namespace tileweave::cpu

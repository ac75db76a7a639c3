// LaunchQueue: N streams of a device that take launches one by one, or record them once for replay.
//
// Used from one host thread. Launches begin in any order that their stream order and `after`
// dependencies allow, so on a device with room they overlap. Between `begin_recording` and
// `end_recording` launches are only noted (a CUDA graph on a GPU); the Recording replays them as
// one unit, each replay after the one before it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tileweave/runtime/launch.h"
#include "tileweave/sync/wait.h"

namespace tileweave {

class Recording {
 public:
  virtual ~Recording() = default;
  /// Enqueues one replay; asynchronous.
  virtual void replay() = 0;
};

/// One lane that waits in a deadlock.
struct StuckWait {
  NodeId node = -1;
  std::string name;  // of the node
  std::int64_t block = 0;
  WaitSite site;
  std::uint32_t seen = 0;
};

/// Found by a device that can see that nothing can make progress any more (explore, model). The
/// device then sets the launches' abort words, so that the stuck blocks drain.
struct Deadlock {
  std::vector<StuckWait> waits;
  std::vector<std::string> not_admitted;  // names of nodes with blocks that fit nowhere
  bool found() const { return !waits.empty() || !not_admitted.empty(); }
};

class LaunchQueue {
 public:
  virtual ~LaunchQueue() = default;

  /// Enqueues one kernel. Every name in `launch.after` was launched before, in this run.
  virtual void launch(const Launch& launch) = 0;
  /// Everything launched later starts after all launched so far has completed (a new run).
  virtual void barrier() = 0;

  virtual void begin_recording() = 0;
  virtual std::unique_ptr<Recording> end_recording() = 0;

  /// Work launched from now on waits for what `stream` holds now.
  virtual void wait_for(NativeStream stream) = 0;
  /// `stream` waits for everything launched so far.
  virtual void block(NativeStream stream) = 0;

  /// Launches (counted from the queue's opening) known to have completed in order: all with a
  /// smaller number have completed too.
  virtual std::int64_t num_completed() = 0;
  /// Returns when launch `number` has completed.
  virtual void wait_until_completed(std::int64_t number) = 0;
  /// Returns when everything launched has completed or drained after an abort. Throws Error for
  /// device faults and failed kernels (checking views).
  virtual void synchronize() = 0;
  /// What the last synchronize() found when nothing could make progress.
  virtual Deadlock deadlock() const { return {}; }
  /// Ticks of the virtual clock since the queue was opened, or -1 on devices without one.
  virtual double model_ticks() const { return -1; }
};

}  // namespace tileweave

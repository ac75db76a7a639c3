// ThroughputEngine: every emulated SM is a thread that runs its resident blocks as fibers.
//
// A worker runs one block until it waits or ends, then any resident block that may go on, and
// begins another one (of the earliest launch that has any and fits) only when none may. So a core
// is never idle while a block could run on it, and blocks that wait do not burn it. Waiting blocks
// look at their abort word and deadline at least every 0.2 ms. The destructor sets the abort words
// of what is in flight and joins.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/runtime/cpu/bell.h"
#include "tileweave/runtime/cpu/engine.h"

namespace tileweave::cpu {

class Worker;

class ThroughputEngine final : public Engine {
 public:
  ThroughputEngine(const CpuOptions& options, const DeviceLimits& limits);
  ~ThroughputEngine() override;

  void submit(const std::shared_ptr<LaunchState>& state,
              const std::vector<ResolvedDependency>& dependencies) override;
  std::int64_t num_completed() override;
  void wait_for_count(std::int64_t count) override;
  void wait_all() override;

 private:
  friend class Worker;
  void fail(const LaunchState& state, std::int64_t block, const std::string& what);
  /// With the lock held, after the board changed.
  void after_change(std::int64_t events_before);
  void drain();

  CpuOptions options_;
  DeviceLimits limits_;
  std::mutex mutex_;
  std::condition_variable completed_;
  LaunchBoard board_;                 // guarded by mutex_
  std::int64_t host_waits_for_ = -1;  // guarded: count the host sleeps for
  bool host_waits_for_all_ = false;   // guarded
  std::optional<Error> error_;        // guarded
  std::atomic<bool> draining_{false};
  std::atomic<bool> stopping_{false};
  Bell bell_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace tileweave::cpu

#include "tileweave/runtime/cpu/throughput.h"

#include <utility>

#include "tileweave/runtime/cpu/worker.h"

namespace tileweave::cpu {

ThroughputEngine::ThroughputEngine(const CpuOptions& options, const DeviceLimits& limits)
    : options_(options), limits_(limits) {
  for (std::int32_t sm = 0; sm < limits.num_sms; ++sm) {
    workers_.push_back(std::make_unique<Worker>(*this, static_cast<std::uint32_t>(sm)));
  }
  for (const auto& worker : workers_) worker->start();
}

ThroughputEngine::~ThroughputEngine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true, std::memory_order_relaxed);
    drain();
  }
  for (const auto& worker : workers_) worker->join();
}

void ThroughputEngine::drain() {
  draining_.store(true, std::memory_order_relaxed);
  for (const auto& state : board_.in_flight()) set_abort(state->abort);
  bell_.ring();
}

void ThroughputEngine::fail(const LaunchState& state, std::int64_t block, const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = kernel_error(state, block, what);
  drain();
}

void ThroughputEngine::after_change(std::int64_t events_before) {
  if (board_.num_events() != events_before) bell_.ring_softly();
  if ((host_waits_for_ >= 0 && board_.num_completed() >= host_waits_for_) ||
      (host_waits_for_all_ && board_.idle())) {
    completed_.notify_all();
  }
}

void ThroughputEngine::submit(const std::shared_ptr<LaunchState>& state,
                              const std::vector<ResolvedDependency>& dependencies) {
  const std::lock_guard lock(mutex_);
  const std::int64_t events = board_.num_events();
  board_.submit(state, dependencies);
  if (draining_.load(std::memory_order_relaxed)) set_abort(state->abort);
  after_change(events);
}

std::int64_t ThroughputEngine::num_completed() {
  const std::lock_guard lock(mutex_);
  return board_.num_completed();
}

void ThroughputEngine::wait_for_count(std::int64_t count) {
  std::unique_lock lock(mutex_);
  host_waits_for_ = count;
  completed_.wait(lock, [&] { return board_.num_completed() >= count; });
  host_waits_for_ = -1;
}

void ThroughputEngine::wait_all() {
  std::unique_lock lock(mutex_);
  host_waits_for_all_ = true;
  completed_.wait(lock, [&] { return board_.idle(); });
  host_waits_for_all_ = false;
  draining_.store(false, std::memory_order_relaxed);
  if (error_) throw std::exchange(error_, std::nullopt).value();
}

std::unique_ptr<Engine> make_throughput_engine(const CpuOptions& options,
                                               const DeviceLimits& limits) {
  return std::make_unique<ThroughputEngine>(options, limits);
}

}  // namespace tileweave::cpu

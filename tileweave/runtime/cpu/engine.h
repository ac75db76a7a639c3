// Engine: one way of running launches (throughput, explore, model) behind a CpuQueue.
//
// The queue resolves names and streams into dependencies and submits launches in order; the engine
// decides which block runs where and when. Called from the queue's host thread only. After a kernel
// has failed or a deadlock was found, an engine drains: abort words are set, waiting blocks leave,
// and blocks that have not begun are skipped until `wait_all` has reported it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tileweave/runtime/cpu/block.h"
#include "tileweave/runtime/cpu/launch_board.h"
#include "tileweave/runtime/device.h"

namespace tileweave::cpu {

struct DescribedDevice;

class Engine {
 public:
  virtual ~Engine() = default;
  virtual void submit(const std::shared_ptr<LaunchState>& state,
                      const std::vector<ResolvedDependency>& dependencies) = 0;
  virtual std::int64_t num_completed() = 0;
  /// Returns when `num_completed() >= count`.
  virtual void wait_for_count(std::int64_t count) = 0;
  /// Returns when nothing is in flight. Throws Error when a kernel failed.
  virtual void wait_all() = 0;
  virtual Deadlock deadlock() const { return {}; }
  virtual double ticks() const { return -1; }
};

std::unique_ptr<Engine> make_throughput_engine(const CpuOptions& options,
                                               const DeviceLimits& limits);
std::unique_ptr<Engine> make_explore_engine(const CpuOptions& options, const DeviceLimits& limits);
std::unique_ptr<Engine> make_model_engine(const CpuOptions& options, const DeviceLimits& limits,
                                          const DescribedDevice& described);

/// 0 -> 1; null is allowed.
void set_abort(std::uint32_t* abort);
bool abort_is_set(const std::uint32_t* abort);
/// The sentence for an exception that left a kernel.
Error kernel_error(const LaunchState& state, std::int64_t block, const std::string& what);
/// Runs an unintegrated operator; returns what it threw, or empty.
std::string run_call(LaunchState& state);

}  // namespace tileweave::cpu

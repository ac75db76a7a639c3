// CpuQueue: the emulated device's LaunchQueue. Turns streams and names into dependencies.
//
// Stream order, `after` and barriers become dependencies between LaunchStates; the engine does the
// rest. A recording keeps its launches and submits them again at each replay, between two barriers.
// Native streams do not exist here: `wait_for` and `block` do nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tileweave/runtime/cpu/engine.h"
#include "tileweave/runtime/launch_queue.h"

namespace tileweave::cpu {

class CpuQueue final : public LaunchQueue {
 public:
  CpuQueue(const CpuOptions& options, const DeviceLimits& limits, std::int32_t num_streams,
           std::unique_ptr<Engine> engine);

  void launch(const Launch& launch) override;
  void barrier() override;
  void begin_recording() override;
  std::unique_ptr<Recording> end_recording() override;
  void wait_for(NativeStream stream) override;
  void block(NativeStream stream) override;
  std::int64_t num_completed() override;
  void wait_until_completed(std::int64_t number) override;
  void synchronize() override;
  Deadlock deadlock() const override { return engine_->deadlock(); }
  double model_ticks() const override { return engine_->ticks(); }

 private:
  friend class CpuRecording;
  /// A launch, or a barrier where null.
  using Recorded = std::vector<std::shared_ptr<const Launch>>;
  using Dependencies = std::vector<ResolvedDependency>;

  void check(const Launch& launch) const;
  void submit(const std::shared_ptr<const Launch>& launch, std::int64_t user_number);
  void begin_run();  // a barrier after which launches name only one another
  void submit_barrier();
  void replay(const Recorded& recorded);
  void depend_on(Dependencies& dependencies, const Launch& launch) const;

  CpuOptions options_;
  DeviceLimits limits_;
  std::unique_ptr<Engine> engine_;
  std::int64_t num_submitted_ = 0;
  std::int64_t num_launches_ = 0;
  std::shared_ptr<LaunchState> barrier_;                      // the last one
  std::vector<std::shared_ptr<LaunchState>> last_on_stream_;  // since the barrier
  std::vector<std::shared_ptr<LaunchState>> since_barrier_;
  std::map<NodeId, std::shared_ptr<LaunchState>> by_node_;  // of this run
  std::optional<Recorded> recording_;
};

}  // namespace tileweave::cpu

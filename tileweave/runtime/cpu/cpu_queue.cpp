#include "tileweave/runtime/cpu/cpu_queue.h"

#include <algorithm>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/runtime/cpu/cost_only.h"

namespace tileweave::cpu {

class CpuRecording final : public Recording {
 public:
  CpuRecording(CpuQueue& queue, CpuQueue::Recorded recorded)
      : queue_(queue), recorded_(std::move(recorded)) {}
  void replay() override { queue_.replay(recorded_); }

 private:
  CpuQueue& queue_;
  CpuQueue::Recorded recorded_;
};

CpuQueue::CpuQueue(const CpuOptions& options, const DeviceLimits& limits, std::int32_t num_streams,
                   std::unique_ptr<Engine> engine)
    : options_(options), limits_(limits), engine_(std::move(engine)) {
  require(num_streams >= 1, "open queue", "at least one stream", std::to_string(num_streams));
  last_on_stream_.resize(static_cast<std::size_t>(num_streams));
}

void CpuQueue::check(const Launch& launch) const {
  const std::string operation = "launch `" + launch.name + "`";
  require(launch.stream >= 0 && static_cast<std::size_t>(launch.stream) < last_on_stream_.size(),
          operation.c_str(), "a stream of the queue", std::to_string(launch.stream));
  require(launch.num_blocks >= 1, operation.c_str(), "at least one block",
          std::to_string(launch.num_blocks));
  if (launch.call) return;
  require(launch.kernel != nullptr && launch.kernel->cpu != nullptr, operation.c_str(),
          "a kernel with an implementation for the emulated device",
          launch.kernel != nullptr ? "`" + launch.kernel->name + "` without one" : "none");
  require(launch.kernel->cpu_lanes >= 1, operation.c_str(), "at least one lane per block",
          std::to_string(launch.kernel->cpu_lanes));
  const std::string misfit = why_no_fit(launch.resources, limits_);
  require(misfit.empty(), operation.c_str(), "a block that fits an SM", misfit);
}

void CpuQueue::launch(const Launch& launch) {
  check(launch);
  const auto kept = std::make_shared<const Launch>(launch);
  if (recording_) {
    recording_->push_back(kept);
    return;
  }
  submit(kept, num_launches_++);
}

void CpuQueue::barrier() {
  if (recording_) {
    recording_->push_back(nullptr);
    return;
  }
  begin_run();
}

void CpuQueue::begin_run() {
  submit_barrier();
  by_node_.clear();
}

void CpuQueue::submit_barrier() {
  if (since_barrier_.empty()) return;  // the barrier before says it all
  auto marker = std::make_shared<LaunchState>();
  marker->kind = LaunchKind::kMarker;
  marker->number = marker->completion->number = num_submitted_++;
  Dependencies dependencies;
  for (const auto& state : std::exchange(since_barrier_, {})) {
    dependencies.push_back({state, Release::kCompleted});
  }
  if (barrier_ != nullptr) dependencies.push_back({barrier_, Release::kCompleted});
  barrier_ = marker;
  std::fill(last_on_stream_.begin(), last_on_stream_.end(), nullptr);
  engine_->submit(marker, dependencies);
}

void CpuQueue::depend_on(Dependencies& dependencies, const Launch& launch) const {
  const auto& previous = last_on_stream_[static_cast<std::size_t>(launch.stream)];
  bool early = false;  // programmatic after the launch before it on its stream
  for (const Dependency& d : launch.after) {
    const auto found = by_node_.find(d.on);
    require(found != by_node_.end(), ("launch `" + launch.name + "`").c_str(),
            "dependencies on nodes launched before it in this run", "node " + std::to_string(d.on));
    dependencies.push_back({found->second, d.release});
    early = early || (d.release == Release::kProgrammatic && found->second == previous);
  }
  if (previous != nullptr && !early) dependencies.push_back({previous, Release::kCompleted});
  if (barrier_ != nullptr) dependencies.push_back({barrier_, Release::kCompleted});
}

void CpuQueue::submit(const std::shared_ptr<const Launch>& launch, std::int64_t user_number) {
  const bool is_call = launch->call != nullptr;
  if (is_call) submit_barrier();
  auto state = std::make_shared<LaunchState>();
  state->launch = launch;
  state->kind = is_call ? LaunchKind::kCall : LaunchKind::kKernel;
  state->number = state->completion->number = num_submitted_++;
  state->completion->stream = launch->stream;
  state->user_number = user_number;
  state->num_blocks = is_call ? 1 : launch->num_blocks;
  state->abort = launch->abort;
  if (!is_call) {
    state->num_lanes = launch->kernel->cpu_lanes;
    state->footprint = footprint(launch->resources, limits_);
    if (options_.way == CpuWay::kModel && options_.model_work == ModelWork::kCostOnly) {
      prepare_costs(*state);
    }
  }
  Dependencies dependencies;
  if (is_call) {
    if (barrier_ != nullptr) dependencies.push_back({barrier_, Release::kCompleted});
  } else {
    depend_on(dependencies, *launch);
  }
  last_on_stream_[static_cast<std::size_t>(launch->stream)] = state;
  since_barrier_.push_back(state);
  by_node_[launch->node] = state;
  engine_->submit(state, dependencies);
  if (is_call) submit_barrier();
}

void CpuQueue::begin_recording() {
  require(!recording_, "begin recording", "a queue that is not recording");
  recording_.emplace();
}

std::unique_ptr<Recording> CpuQueue::end_recording() {
  require(recording_.has_value(), "end recording", "a queue that is recording");
  return std::make_unique<CpuRecording>(*this, std::exchange(recording_, std::nullopt).value());
}

void CpuQueue::replay(const Recorded& recorded) {
  require(!recording_, "replay", "a queue that is not recording");
  begin_run();
  for (const auto& launch : recorded) {
    if (launch == nullptr) {
      begin_run();
    } else {
      submit(launch, -1);
    }
  }
  submit_barrier();
}

void CpuQueue::wait_for(NativeStream /*stream*/) {}
void CpuQueue::block(NativeStream /*stream*/) {}

std::int64_t CpuQueue::num_completed() {
  return engine_->num_completed();
}

void CpuQueue::wait_until_completed(std::int64_t number) {
  require(number < num_launches_, "wait for a launch", "one that was launched",
          "number " + std::to_string(number) + " of " + std::to_string(num_launches_));
  engine_->wait_for_count(number + 1);
}

void CpuQueue::synchronize() {
  require(!recording_, "synchronize", "a queue that is not recording");
  engine_->wait_all();
}

}  // namespace tileweave::cpu

#include "tileweave/runtime/cuda/completion_tracker.cuh"

#include "tileweave/runtime/cuda/cuda_status.cuh"

namespace tileweave {

void CompletionTracker::put_marker(const StreamWindow& window) {
  Marker marker{.count = launched_, .events = {}};
  for (std::int32_t s = 0; s < window.num_streams(); ++s) {
    if (!window.used(s)) continue;
    marker.events.push_back(events_.take());
    check_cuda(cudaEventRecord(marker.events.back(), window.stream(s)), "record an event");
  }
  marked_ = launched_;
  markers_.push_back(std::move(marker));
}

void CompletionTracker::capture_begins(const StreamWindow& window) {
  if (marked_ < launched_) put_marker(window);
}

void CompletionTracker::captured() {
  marked_ = ++launched_;
  if (markers_.empty()) {
    completed_ = launched_;
  } else {
    markers_.back().count = launched_;
  }
}

void CompletionTracker::drop_front() {
  completed_ = markers_.front().count;
  for (const cudaEvent_t event : markers_.front().events) events_.give_back(event);
  markers_.pop_front();
}

std::int64_t CompletionTracker::completed(const StreamWindow& window) {
  while (!markers_.empty()) {
    bool all_done = true;
    for (const cudaEvent_t event : markers_.front().events) {
      const cudaError_t status = cudaEventQuery(event);
      if (status == cudaErrorNotReady) {
        cudaGetLastError();
        all_done = false;
        break;
      }
      check_cuda(status, "ask whether a kernel has completed");
    }
    if (!all_done) break;
    drop_front();
  }
  const bool worth_it = launched_ - marked_ >= kLaunchesPerMarker;
  if (worth_it || (markers_.empty() && marked_ < launched_)) put_marker(window);
  return completed_;
}

void CompletionTracker::wait(std::int64_t count, const StreamWindow& window) {
  if (count <= completed_) return;
  if (marked_ < count && marked_ < launched_) put_marker(window);
  while (!markers_.empty() && completed_ < count) {
    for (const cudaEvent_t event : markers_.front().events) {
      check_cuda(cudaEventSynchronize(event), "wait for a kernel");
    }
    drop_front();
  }
}

void CompletionTracker::all_completed() {
  while (!markers_.empty()) drop_front();
  completed_ = marked_ = launched_;
}

}  // namespace tileweave

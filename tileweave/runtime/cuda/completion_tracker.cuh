// CompletionTracker: how many launches of a queue have completed, in order.
//
// Costs nothing until somebody asks: a question puts a marker (one event per used stream) behind
// what was launched so far, at most once in kLaunchesPerMarker launches, and looks at the markers
// put there before. Nothing of a capture runs until somebody launches the graph, so its launches
// count as completed as soon as everything before the capture is.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "tileweave/runtime/cuda/event_pool.cuh"
#include "tileweave/runtime/cuda/stream_window.cuh"

namespace tileweave {

class CompletionTracker {
 public:
  static constexpr std::int64_t kLaunchesPerMarker = 8;

  std::int64_t num_launched() const { return launched_; }
  void launched() { ++launched_; }
  /// A capture begins on the streams of `window`: no event can be put there until it ends.
  void capture_begins(const StreamWindow& window);
  void captured();

  /// How many are known to have completed. May put a marker on the streams of `window`.
  std::int64_t completed(const StreamWindow& window);
  /// Returns when the first `count` launches have completed.
  void wait(std::int64_t count, const StreamWindow& window);
  /// Everything so far has completed.
  void all_completed();

 private:
  struct Marker {
    std::int64_t count = 0;  // launches that have completed when the events have
    std::vector<cudaEvent_t> events;
  };

  void put_marker(const StreamWindow& window);
  void drop_front();

  EventPool events_;
  std::deque<Marker> markers_;
  std::int64_t launched_ = 0;
  std::int64_t marked_ = 0;
  std::int64_t completed_ = 0;
};

}  // namespace tileweave

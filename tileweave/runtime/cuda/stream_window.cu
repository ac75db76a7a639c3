#include "tileweave/runtime/cuda/stream_window.cuh"

#include <algorithm>
#include <string>

#include "tileweave/core/error.h"
#include "tileweave/runtime/cuda/cuda_status.cuh"

namespace tileweave {

StreamWindow::StreamWindow(std::vector<cudaStream_t> streams, EventReuse reuse)
    : streams_(std::move(streams)), reuse_(reuse), state_(streams_.size()) {
  for (StreamState& s : state_) s.seen.assign(streams_.size(), 0);
}

cudaEvent_t StreamWindow::record(cudaStream_t stream) {
  const cudaEvent_t event = events_.take();
  check_cuda(cudaEventRecord(event, stream), "record an event");
  return event;
}

void StreamWindow::wait(std::int32_t s, cudaEvent_t event) {
  check_cuda(cudaStreamWaitEvent(stream(s), event, 0), "let a stream wait for an event");
  state(s).ends_with_kernel = false;
  state(s).used = true;
}

void StreamWindow::done_with(cudaEvent_t event) {
  // A capture's events stay with it; they are destroyed when its window is.
  if (reuse_ == EventReuse::kOn) events_.give_back(event);
}

void StreamWindow::wait_for_stream(std::int32_t s, std::int32_t other) {
  const cudaEvent_t event = record(stream(other));
  wait(s, event);
  done_with(event);
  state(s).seen[static_cast<std::size_t>(other)] = state(other).last_number;
}

void StreamWindow::follow(std::int32_t s) {
  StreamState& own = state(s);
  for (; own.entries_seen < entries_.size(); ++own.entries_seen) {
    wait(s, entries_[own.entries_seen]);
  }
  if (own.section == section_) return;
  if (fork_ == nullptr) fork_ = record(stream(hub_));
  wait(s, fork_);
  own.section = section_;
}

void StreamWindow::enter(std::int32_t s) {
  follow(s);
  // The hub's own next launch belongs to the new section: the other streams must not wait for it.
  if (s == hub_ && fork_ == nullptr && section_ > 0 && num_streams() > 1) fork_ = record(stream(s));
}

bool StreamWindow::matters(std::int32_t s, const LaunchRecord& on) const {
  return on.stream != s && on.section == section_ &&
         state(s).seen[static_cast<std::size_t>(on.stream)] < on.number;
}

bool StreamWindow::directly_follows(std::int32_t s, const LaunchRecord& on) const {
  return on.stream == s && on.number == state(s).last_number && state(s).ends_with_kernel;
}

void StreamWindow::wait_completed(std::int32_t s, const LaunchRecord& on) {
  if (!matters(s, on)) return;
  const std::vector<EndMark>& ends = state(on.stream).ends;
  const auto end = std::find_if(ends.begin(), ends.end(),
                                [&](const EndMark& mark) { return mark.number >= on.number; });
  if (end == ends.end()) {
    wait_for_stream(s, on.stream);
    return;
  }
  wait(s, end->event);
  state(s).seen[static_cast<std::size_t>(on.stream)] = end->number;
}

void StreamWindow::mark_end(std::int32_t s) {
  if (num_streams() < 2) return;
  state(s).ends.push_back({state(s).last_number, record(stream(s))});
}

void StreamWindow::wait_launch_completion(std::int32_t s, const LaunchRecord& on) {
  if (!matters(s, on)) return;
  if (on.launch_completion == nullptr) {
    wait_for_stream(s, on.stream);
  } else {
    wait(s, on.launch_completion);
  }
}

void StreamWindow::touch(std::int32_t s) {
  StreamState& own = state(s);
  own.unjoined = own.used = true;
  own.ends_with_kernel = false;
}

void StreamWindow::add(NodeId node, LaunchRecord record) {
  StreamState& own = state(record.stream);
  own.unjoined = own.used = true;
  own.ends_with_kernel = true;
  record.section = section_;
  record.number = ++own.last_number;
  LaunchRecord& place = launches_[node];
  if (place.launch_completion != nullptr) done_with(place.launch_completion);
  place = record;
}

const LaunchRecord& StreamWindow::find(NodeId node) const {
  for (const auto* launches : {&launches_, &older_launches_}) {
    const auto found = launches->find(node);
    if (found != launches->end()) return found->second;
  }
  throw Error("launch a kernel", "what it comes after must have been launched in this run",
              "node " + std::to_string(node));
}

void StreamWindow::join(std::int32_t hub) {
  follow(hub);
  bool any = state(hub).unjoined;
  for (std::int32_t other = 0; other < num_streams(); ++other) {
    if (other == hub || !state(other).unjoined) continue;
    wait_for_stream(hub, other);
    state(other).unjoined = false;
    any = true;
  }
  if (fork_ != nullptr) done_with(fork_);
  fork_ = nullptr;
  hub_ = hub;
  ++section_;
  state(hub).section = section_;
  state(hub).unjoined = any;
}

void StreamWindow::forget_old_launches() {
  for (const auto& [node, launch] : older_launches_) {
    if (launch.launch_completion != nullptr) done_with(launch.launch_completion);
  }
  older_launches_.clear();
  older_launches_.swap(launches_);
  for (StreamState& own : state_) {
    // What could name them has been forgotten with the launches before the last call.
    std::erase_if(own.ends, [&](const EndMark& mark) {
      if (mark.number > own.old_number) return false;
      done_with(mark.event);
      return true;
    });
    own.old_number = own.last_number;
  }
}

void StreamWindow::wait_for(cudaStream_t user) {
  const cudaEvent_t event = record(user);
  if (reuse_ == EventReuse::kOff) {
    // Streams join a capture when they are first used in it.
    entries_.push_back(event);
    return;
  }
  for (std::int32_t s = 0; s < num_streams(); ++s) wait(s, event);
  done_with(event);
}

void StreamWindow::block(cudaStream_t user) {
  for (std::int32_t s = 0; s < num_streams(); ++s) {
    if (!used(s)) continue;
    const cudaEvent_t event = record(stream(s));
    check_cuda(cudaStreamWaitEvent(user, event, 0), "let the user's stream wait");
    done_with(event);
  }
}

void StreamWindow::drained() {
  for (StreamState& s : state_) s.used = s.unjoined = false;
}

}  // namespace tileweave

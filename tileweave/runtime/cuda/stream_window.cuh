// StreamWindow: puts launches on N streams in the order that their dependencies ask for.
//
// Knows what each stream has been told to wait for and inserts the fewest events that make the
// order hold. A queue has one window for ordinary work; each stream capture has its own, because
// events may not cross its border. A *section* is the work between two joins: everything in a later
// section waits for everything in earlier ones. Host only; one thread.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tileweave/plan/verdict.h"
#include "tileweave/runtime/cuda/event_pool.cuh"

namespace tileweave {

/// Whether events are used once and kept (captures), or again and again.
enum class EventReuse : std::uint8_t { kOff, kOn };

/// A launch that later ones may name.
struct LaunchRecord {
  std::int32_t stream = 0;
  std::int64_t section = 0;
  std::int64_t number = 0;  // on its stream
  std::int64_t num_blocks = 0;
  const std::uint32_t* begun = nullptr;
  const std::uint32_t* begun_base = nullptr;
  cudaEvent_t launch_completion = nullptr;
};

class StreamWindow {
 public:
  StreamWindow(std::vector<cudaStream_t> streams, EventReuse reuse);

  /// Before anything is put on stream `s`: orders it after the earlier sections and user streams.
  void enter(std::int32_t s);
  /// Stream `s` waits until `on` has completed: by the first event behind it on its stream, else by
  /// one recorded now.
  void wait_completed(std::int32_t s, const LaunchRecord& on);
  /// Stream `s` waits for the launch-completion event of `on`.
  void wait_launch_completion(std::int32_t s, const LaunchRecord& on);
  /// False where stream order or a join already makes `on` complete before what comes on `s`.
  bool matters(std::int32_t s, const LaunchRecord& on) const;
  /// True when `on` is what stream `s` does last, with nothing waited for after it.
  bool directly_follows(std::int32_t s, const LaunchRecord& on) const;

  /// Something other than a kernel of the window was put on stream `s`.
  void touch(std::int32_t s);
  /// A kernel was launched on stream `s`.
  void add(NodeId node, LaunchRecord record);
  /// Records an event behind what stream `s` holds now, for launches that wait for it later.
  void mark_end(std::int32_t s);
  /// Throws Error when no launch of that name is known.
  const LaunchRecord& find(NodeId node) const;

  /// Ends a section on stream `hub`, which waits for all others. What is put on `hub` next still
  /// comes before the next section.
  void join(std::int32_t hub);
  /// Launches of sections before the last one that was forgotten can no longer be named.
  void forget_old_launches();
  /// What comes later on any stream waits for what `stream` holds now.
  void wait_for(cudaStream_t stream);
  /// `stream` waits for everything that this window put on its streams.
  void block(cudaStream_t stream);

  cudaEvent_t take_event() { return events_.take(); }
  cudaStream_t stream(std::int32_t s) const { return streams_[static_cast<std::size_t>(s)]; }
  std::int32_t num_streams() const { return static_cast<std::int32_t>(streams_.size()); }
  /// True when stream `s` was used since the window was opened or last drained.
  bool used(std::int32_t s) const { return state_[static_cast<std::size_t>(s)].used; }
  /// Everything has completed: nobody needs to wait for the work so far.
  void drained();

 private:
  struct EndMark {
    std::int64_t number;  // the launches of the stream up to this one have completed
    cudaEvent_t event;
  };
  struct StreamState {
    std::vector<EndMark> ends;       // since launches were forgotten twice
    std::int64_t old_number = 0;     // last launch before they were forgotten last
    std::int64_t last_number = 0;    // of its launches
    std::int64_t section = 0;        // the section it works in
    std::size_t entries_seen = 0;    // events of user streams it waits for
    std::vector<std::int64_t> seen;  // per other stream: complete up to this launch number
    bool unjoined = false;           // holds work that no join has covered
    bool used = false;
    bool ends_with_kernel = false;
  };

  StreamState& state(std::int32_t s) { return state_[static_cast<std::size_t>(s)]; }
  const StreamState& state(std::int32_t s) const { return state_[static_cast<std::size_t>(s)]; }
  cudaEvent_t record(cudaStream_t stream);
  void wait(std::int32_t s, cudaEvent_t event);
  void done_with(cudaEvent_t event);
  /// Stream `s` waits for the earlier sections and for user streams.
  void follow(std::int32_t s);
  /// Stream `s` waits for all that stream `other` holds.
  void wait_for_stream(std::int32_t s, std::int32_t other);

  std::vector<cudaStream_t> streams_;
  EventReuse reuse_;
  EventPool events_;
  std::vector<StreamState> state_;
  std::vector<cudaEvent_t> entries_;
  std::int64_t section_ = 0;
  std::int32_t hub_ = 0;
  cudaEvent_t fork_ = nullptr;  // recorded on the hub at the end of the last section, when needed
  std::unordered_map<NodeId, LaunchRecord> launches_;
  std::unordered_map<NodeId, LaunchRecord> older_launches_;
};

}  // namespace tileweave

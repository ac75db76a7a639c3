// Launch: one kernel of a run with everything resolved, as a device's queue takes it.
//
// Made by Program and AsyncStream from a NodeSpec, its schedule and its addresses; holds no pointer
// into the plan, so a queue may keep it (a recording does).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tileweave/plan/verdict.h"
#include "tileweave/runtime/kernel_library.h"
#include "tileweave/sync/context.h"

namespace tileweave {

/// Whether later launches may name this one with Release::kLaunchCompleted.
enum class CompletionEvent : std::uint8_t { kNone, kLaunchCompletion };

/// Whether an event is recorded behind a launch. A launch on another stream with
/// Release::kCompleted then waits for this one alone, not for whatever its stream holds by that
/// time.
enum class EndEvent : std::uint8_t { kNone, kRecorded };

/// What a device needs for the wait kernel that it puts before a launch with a kAllBegun or
/// kFirstBegun dependency. The abort word is the launch's.
struct WaitKernelSync {
  HangReport* report = nullptr;   // device address; a wait kernel reports WaitKind::kBegun, with
                                  // the producer's node as tile
  std::uint64_t deadline_ns = 0;  // longest wait; 0: none
  std::uint32_t node = 0;         // the waiting node, as in its SyncHeader
  std::uint32_t rank = 0;
};

struct Launch {
  NodeId node = -1;
  std::string name;
  const KernelImpl* kernel = nullptr;  // null for a call (below)
  std::int64_t num_blocks = 1;
  std::int64_t num_works = 1;
  KernelResources resources = {};
  std::vector<std::byte> args = {};
  std::vector<std::byte> context = {};  // SyncContext<N>, empty when the kernel takes none
  std::int32_t stream = 0;
  std::vector<Dependency> after = {};    // `on` names launches by NodeId within the same run
  const std::uint32_t* begun = nullptr;  // this node's counter of begun blocks (device address)
  const std::uint32_t* begun_base = nullptr;
  std::uint32_t* abort = nullptr;  // the run's abort word, set by a device that finds a deadlock
  CompletionEvent completion_event = CompletionEvent::kNone;
  EndEvent end_event = EndEvent::kNone;
  WaitKernelSync wait_kernel = {};
  Cost cost = {};
  /// Unintegrated operator: enqueues its own work on the given stream; full dependencies around it.
  std::function<void(NativeStream)> call = nullptr;
  /// Plan this launch came from, for checking views; null: not checked.
  std::shared_ptr<const NodeSpec> spec = nullptr;
  std::shared_ptr<const TensorTable> tensors = nullptr;
};

}  // namespace tileweave

// LaunchState: one launch on its way through the emulated device, from enqueued to completed.
//
// The counters and lists belong to the LaunchBoard and are guarded by its engine. The completion
// word carries memory order from kernel to kernel: every lane of a launch adds to it as its last
// act, every lane of a launch that begins after that completion loads it as its first. That is the
// only order that stream order and full dependencies give, and all that ThreadSanitizer sees.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "tileweave/plan/resources.h"
#include "tileweave/runtime/launch.h"

namespace tileweave::cpu {

struct Completion {
  std::int32_t stream = -1;  // -1: a barrier, which covers every launch before it
  std::int64_t number = 0;
  std::atomic<std::uint32_t> word{0};
};

enum class LaunchKind : std::uint8_t {
  kKernel,
  kCall,   // an unintegrated operator: runs on the scheduler's own stack
  kMarker  // a barrier: completes as soon as everything before it has
};

struct LaunchState {
  std::shared_ptr<const Launch> launch;  // null for a marker
  LaunchKind kind = LaunchKind::kKernel;
  std::int64_t number = 0;        // among all launches and markers of the queue
  std::int64_t user_number = -1;  // among launch() calls; -1 for markers and replays
  std::int64_t num_blocks = 0;
  int num_lanes = 1;
  BlockFootprint footprint;
  std::uint32_t* abort = nullptr;

  // Cost-only model (cost_only.h): the spec is played instead of the kernel.
  bool plays_costs = false;
  std::vector<std::byte> own_context;  // with the tables below in place of functors
  std::vector<std::vector<std::int32_t>> map_tables;
  std::vector<std::vector<std::uint32_t>> target_tables;
  std::vector<std::vector<std::uint32_t>> contributions;  // per operand and split kernel tile
  std::vector<std::vector<std::atomic<std::uint32_t>>> arrivals;

  // Memory order.
  std::atomic<std::uint32_t> enqueued{0};
  std::shared_ptr<Completion> completion = std::make_shared<Completion>();
  std::vector<std::shared_ptr<Completion>> begins_after;        // complete before any block begins
  std::vector<std::shared_ptr<LaunchState>> grid_dependencies;  // programmatic
  std::atomic<bool> completed{false};

  // Board.
  int num_blockers = 0;
  double opens_at = 0;  // model: tick at which blocks may begin
  std::int64_t num_begun = 0;
  std::int64_t num_triggered = 0;  // blocks that called launch_dependents, or ended
  std::int64_t num_ended = 0;
  std::vector<LaunchState*> at_first_begun;
  std::vector<LaunchState*> at_all_begun;
  std::vector<LaunchState*> at_all_triggered;
  std::vector<LaunchState*> at_completion;

  const std::string& name() const { return launch->name; }
  const std::byte* context_bytes() const {
    return own_context.empty() ? launch->context.data() : own_context.data();
  }
};

/// Adds `completion` to `list` and drops what it covers: earlier ones of its stream, or, for a
/// barrier, everything earlier.
void add_completion(std::vector<std::shared_ptr<Completion>>& list,
                    const std::shared_ptr<Completion>& completion);

}  // namespace tileweave::cpu

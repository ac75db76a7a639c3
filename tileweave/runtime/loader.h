// From a verified plan to launches: who polls, which flags, which bytes.
//
// The part of loading that has no device state of its own, shared by Program and AsyncStream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/plan/happens_before.h"
#include "tileweave/plan/plan.h"
#include "tileweave/plan/verdict.h"
#include "tileweave/plan/verify.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/launch.h"
#include "tileweave/runtime/run_options.h"
#include "tileweave/runtime/sync_state.h"

namespace tileweave {

/// Replaces the declared resources of a node by what the device's compiler made of its kernel, and
/// compares the plan's residency with the device's own occupancy calculation. Throws Error naming
/// the kernel when they differ.
void measure_resources(NodeSpec& node, const Device& device);

/// Streams and dependencies as a plan asks for them, whatever verify() has to say about it: for
/// runs with the contract check off.
Schedule unchecked_schedule(const Plan& plan, VerifyOptions how);

/// Refuses operands with several data tiles for a kernel compiled for one. Throws Error naming
/// both.
void check_tile_support(const NodeSpec& node, const TensorTable& tensors, const Device& device);

/// Kernel grid of the only producer when it signals through a plain map and makes exactly the
/// `arrivals` that its grid promises, else none: the target then has a closed form.
std::optional<Tiling> closed_form_producer(TensorId id, const std::vector<NodeSpec>& nodes,
                                           const TensorTable& tensors,
                                           const std::vector<std::int64_t>& arrivals);

/// Which operands of which nodes touch semaphores. In `overlap` a wait whose producers have all
/// completed before the node begins is left out, and so are signals that nobody polls; in `serial`
/// everything is kept, since serial mode is the check that every wait is satisfied when reached.
std::vector<std::vector<bool>> live_operands(const Plan& plan, const Schedule& schedule,
                                             const HappensBefore& order, Mode mode);

/// Whether some node is released by the launch-completion event of `id`.
CompletionEvent completion_event_of(NodeId id, const Schedule& schedule);

/// Whether an event is to be recorded behind a node: when a later node on another stream waits for
/// its completion after more has been put on the node's own stream.
EndEvent end_event_of(NodeId id, const Schedule& schedule);
/// The part of a launch that follows from its node, its place in the schedule and the run's sync
/// state; kernel, arguments, context and the plan that it keeps alive are the caller's.
Launch launch_of_node(NodeId id, const NodeSpec& spec, const ScheduledNode& scheduled,
                      const SyncState& state);
/// Of a launch, complete but for this, of what is another library's function: lets that load and
/// choose, and makes it the launch's call, unless the device has a form of its own. Nothing for
/// other kernels. Throws Error naming the node, as the call does.
void prepare_vendor_call(Launch& launch, Device& device);
/// SyncHeader flags of a node.
std::uint32_t header_flags(NodeId id, const Schedule& schedule, Mode mode);

}  // namespace tileweave

// Cost-only model: plays a launch's NodeSpec instead of running its kernel.
//
// Every work waits for the kernel tiles it reads and signals those it writes, in the order of works
// and through the same semaphore words and synchronisation calls as the kernel, so that the
// timeline is that of the kernel without its arithmetic. Functor maps are replaced by tables made
// from their host twins. Launches without a spec (the end of a run) run their kernel.
#pragma once

#include "tileweave/runtime/cpu/block.h"
#include "tileweave/runtime/cpu/launch_state.h"

namespace tileweave::cpu {

/// On the host, before the launch is submitted.
void prepare_costs(LaunchState& state);
/// On the lane's fiber, in place of the kernel.
void play_costs(BlockLane& lane, LaunchState& state);

}  // namespace tileweave::cpu

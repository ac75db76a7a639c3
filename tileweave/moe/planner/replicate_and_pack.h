// A planner for comparison, after the published description of EPLB: greedy replication, then
// packing. Not tuned further than that description goes.
//
// While there are free slots, the expert with the most blocks per copy gets one copy more; then the
// replicas, largest share first, go to the least loaded rank with a free slot that does not hold
// the expert. An expert's blocks are split evenly among its copies. Owners stay where they are,
// which EPLB does not demand. May come out worse than fixed placement. Writes workspace.best.
#pragma once

#include "tileweave/moe/planner/workspace.h"

namespace tileweave {

void replicate_and_pack(const PlannerWorkspace& workspace);

}  // namespace tileweave

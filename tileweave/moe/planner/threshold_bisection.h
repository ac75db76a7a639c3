// A planner for comparison, after the published description of UltraEP's: bisection on the largest
// load. Not tuned further than that description goes.
//
// A threshold is feasible if every rank above it can give its excess away: ranks by falling load,
// their experts by falling blocks, each time to the rank with the most room that has a free slot.
// A replica takes at least 1024 rows, the owner keeps at least one block. Stops when the bounds lie
// within 1/100 of the fair share. Reads and writes workspace.best (from fixed placement).
#pragma once

#include <cstdint>

#include "tileweave/moe/planner/workspace.h"

namespace tileweave {

void bisect_threshold(std::int32_t fair_share, const PlannerWorkspace& workspace);

}  // namespace tileweave

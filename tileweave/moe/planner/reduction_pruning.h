// Reduction-aware pruning (Appendix A.2) and the time that it, and the gate, go by.
//
// A replica makes its owner reduce one more whole gradient, however few rows it has computed:
// C(placement) = max over ranks of load + lambda x replicas that the rank exports.
#pragma once

#include <cstdint>

#include "tileweave/moe/planner/planner_options.h"
#include "tileweave/moe/planner/workspace.h"

namespace tileweave {

/// C, in 1/kTimeUnit of a block's time.
std::int64_t predicted_time(const Placement& placement, std::int32_t lambda);

/// While the rank that attains C (lowest of equals) exports a replica of fewer than lambda blocks:
/// its smallest one (then lowest expert, lowest rank) is dropped and the owner has its blocks back.
/// May raise the largest load. Whether that paid is for the caller to compare.
void prune_for_reduction(const Placement& placement, std::int32_t lambda);

}  // namespace tileweave

// Refinement of a placement (Appendix A.1): prunes replicas that are not needed and moves single
// blocks between ranks that share an expert. Opens no replica, never raises the largest load.
#pragma once

#include <cstdint>

#include "tileweave/moe/planner/workspace.h"

namespace tileweave {

/// Drops replicas, the smallest first (then lowest expert, lowest rank), whose blocks fit on the
/// owner, or else on the least loaded other holder, without passing the largest load.
void prune_replicas(const PlannerWorkspace& workspace, const Placement& placement);

/// For each shared expert, in ascending order: blocks go one by one from its most to its least
/// loaded holder while their loads differ by two or more; repeated until nothing moves, at most P
/// times. A replica left without blocks is gone.
void balance_blocks(const PlannerWorkspace& workspace, const Placement& placement);

/// Valid rows of each rank, into workspace.rank_rows. An expert's last block, the one that may have
/// gaps, lies on its last holder: owner first, then ascending ranks.
void count_rank_rows(const PlannerWorkspace& workspace, const Placement& placement);

/// Single blocks that lower the rows of a rank with the most rows, or the number of such ranks,
/// without passing the largest number of blocks; at most 8 P of them. Leaves workspace.rank_rows.
void balance_rows(const PlannerWorkspace& workspace, const Placement& placement);

}  // namespace tileweave

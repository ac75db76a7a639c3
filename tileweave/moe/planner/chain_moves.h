// Chain moves: what the greedy searches miss because the rank with room cannot take an expert of
// the rank without, having no slot left.
//
// While a rank has more than the fair share and another has less, blocks go along the shortest
// chain of ranks between them: each gives as many blocks of one of its experts to the next, which
// has the weights already (of several the expert with the most blocks) or else a free slot. Loads
// change at both ends only. At most 4 P chains. Part of preset `tuned`; not in the paper.
#pragma once

#include <cstdint>

#include "tileweave/moe/planner/workspace.h"

namespace tileweave {

/// `rank_scratch`: 3 P words.
void chain_moves(std::int32_t fair_share, const Placement& placement, std::int32_t* rank_scratch);

}  // namespace tileweave

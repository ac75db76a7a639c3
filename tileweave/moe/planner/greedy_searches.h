// The four greedy searches of Appendix A.1: donor priority x fan-out, from fixed placement.
//
// A *donor* is a rank with more than the fair share tau = ceil(blocks / ranks). In each round every
// donor, in order of priority, gives blocks of its hottest expert (most blocks left, lowest id)
// that somebody can take: to the least loaded rank below tau that holds a copy already, else to the
// least loaded one below tau with a free slot; ties go to the lowest rank. It gives what it has,
// what the receiver lacks to tau, or its own excess, whichever is least. At most num_slots + 2
// rounds; a round that moves nothing is the last.
#pragma once

#include <cstdint>

#include "tileweave/moe/planner/workspace.h"

namespace tileweave {

/// Order of donors: by load, or by the blocks of their hottest expert; ties to the lowest rank.
enum class DonorPriority : std::uint8_t { kLoad, kHottestExpert };
/// One receiver per donor and round, or as many as it takes.
enum class FanOut : std::uint8_t { kOneCopy, kManyCopies };

struct GreedySearch {
  DonorPriority priority;
  FanOut fan_out;
};

inline constexpr GreedySearch kGreedySearches[] = {
    {DonorPriority::kLoad, FanOut::kOneCopy},
    {DonorPriority::kLoad, FanOut::kManyCopies},
    {DonorPriority::kHottestExpert, FanOut::kOneCopy},
    {DonorPriority::kHottestExpert, FanOut::kManyCopies}};

/// `placement` starts as fixed placement; `rank_scratch`: 2 P words.
void search(const GreedySearch& search, std::int32_t fair_share, const Placement& placement,
            std::int32_t* rank_scratch);

}  // namespace tileweave

// PlannerWorkspace: every word a planner touches besides its input and its result.
//
// The caller gives workspace_words(shape) 32-bit words, in any state; nothing is allocated. For 8
// ranks and 256 experts that is 21 KiB: one CTA's shared memory. In words, E experts, P ranks:
//   expert_rows    E          rows of the expert, all sources
//   expert_blocks  E          ceil(rows / block_rows)
//   expert_gap     E          rows that its last block lacks
//   scratch        2 E        lists of experts
//   rank_rows      P          valid rows that the rank computes
//   rank_scratch   3 P        lists of ranks
//   best, current  (E + 3) P  each: load, replicas, exported (P), then blocks (E, P)
#pragma once

#include <cstdint>

#include "tileweave/moe/planner/placement.h"

namespace tileweave {

struct PlannerWorkspace {
  std::int32_t* expert_rows;
  std::int32_t* expert_blocks;
  std::int32_t* expert_gap;
  std::int32_t* scratch;
  std::int32_t* rank_rows;
  std::int32_t* rank_scratch;
  Placement best;
  Placement current;

  TW_HOST_DEVICE static constexpr PlannerWorkspace at(std::int32_t* words,
                                                      const PlannerShape& shape) {
    const std::int64_t e = shape.num_experts, p = shape.num_ranks;
    std::int32_t* best = words + 5 * e + 4 * p;
    return {.expert_rows = words,
            .expert_blocks = words + e,
            .expert_gap = words + 2 * e,
            .scratch = words + 3 * e,
            .rank_rows = words + 5 * e,
            .rank_scratch = words + 5 * e + p,
            .best = Placement::at(best, shape),
            .current = Placement::at(best + Placement::num_words(shape), shape)};
  }
};

TW_HOST_DEVICE constexpr std::int64_t workspace_words(const PlannerShape& shape) {
  return 5 * static_cast<std::int64_t>(shape.num_experts) + 4 * shape.num_ranks +
         2 * Placement::num_words(shape);
}

}  // namespace tileweave

// PlannerShape: ranks, experts, replica slots and rows per block of one MoE layer, and who owns
// which expert.
//
// Experts are owned in contiguous ranges; the first num_experts % num_ranks ranks own one more.
// The weights of an owned expert are always there; a *replica* is a copy of another rank's expert
// in one of the rank's num_slots slots. Pure, host and device.
#pragma once

#include <cstdint>

#include "tileweave/core/target.h"

namespace tileweave {

struct PlannerShape {
  std::int32_t num_ranks = 1;
  std::int32_t num_experts = 1;
  std::int32_t num_slots = 0;     // replicas that a rank may hold
  std::int32_t block_rows = 128;  // most rows of a block: the M tile of the expert GEMMs

  TW_HOST_DEVICE constexpr std::int32_t num_owned(std::int32_t rank) const {
    return num_experts / num_ranks + (rank < num_experts % num_ranks ? 1 : 0);
  }
  TW_HOST_DEVICE constexpr std::int32_t first_owned(std::int32_t rank) const {
    const std::int32_t more = num_experts % num_ranks;
    return num_experts / num_ranks * rank + (rank < more ? rank : more);
  }
  TW_HOST_DEVICE constexpr std::int32_t owner_of(std::int32_t expert) const {
    const std::int32_t few = num_experts / num_ranks, more = num_experts % num_ranks;
    const std::int32_t bound = more * (few + 1);  // experts of the ranks that own one more
    return expert < bound ? expert / (few + 1) : more + (expert - bound) / few;
  }
  /// A quarter of the owned experts, at least one.
  TW_HOST_DEVICE static constexpr std::int32_t default_slots(std::int32_t num_ranks,
                                                             std::int32_t num_experts) {
    const std::int32_t most_owned = (num_experts + num_ranks - 1) / num_ranks;
    return most_owned / 4 > 1 ? most_owned / 4 : 1;
  }
  constexpr bool operator==(const PlannerShape&) const = default;
};

}  // namespace tileweave

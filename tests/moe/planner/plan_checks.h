// What must hold for every plan, whoever made it; for tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tileweave/moe/planner/replica_planner.h"
#include "tileweave/moe/planner/row_assignment.h"

namespace tileweave {

/// Reports at most one violation; empty: the plan is right. Made without the planner's own sums.
inline std::string violation_of(const ReplicaPlan& plan, const std::vector<std::int32_t>& counts) {
  const PlannerShape& shape = plan.shape;
  const auto ranks = static_cast<std::size_t>(shape.num_ranks);
  const auto experts = static_cast<std::size_t>(shape.num_experts);
  std::vector<std::int64_t> load(ranks), load_fixed(ranks), placed(ranks * experts);
  std::vector<int> replicas(ranks);
  for (std::size_t e = 0; e < experts; ++e) {
    std::int64_t rows = 0, blocks = 0;
    for (std::size_t p = 0; p < ranks; ++p) rows += counts[p * experts + e];
    const auto expert = static_cast<std::int32_t>(e);
    const std::int32_t owner = shape.owner_of(expert);
    for (std::size_t g = 0; g < ranks; ++g) {
      const auto rank = static_cast<std::int32_t>(g);
      const std::int32_t here = plan.of(expert, rank);
      if (here < 0) return "fewer than no blocks of expert " + std::to_string(e);
      blocks += here;
      load[g] += here;
      const auto slots = plan.slots(rank);
      const auto copies = std::count(slots.begin(), slots.end(), expert);
      if (copies != (here > 0 && rank != owner ? 1 : 0)) {
        return std::to_string(copies) + " slots of expert " + std::to_string(e) + " on rank " +
               std::to_string(g) + ", which has " + std::to_string(here) + " of its blocks";
      }
      replicas[g] += static_cast<int>(copies);
    }
    const std::int64_t needed = (rows + shape.block_rows - 1) / shape.block_rows;
    load_fixed[static_cast<std::size_t>(owner)] += needed;
    if (blocks != needed) return "blocks of expert " + std::to_string(e) + " do not add up";
  }
  for (std::size_t g = 0; g < ranks; ++g) {
    const auto slots = plan.slots(static_cast<std::int32_t>(g));
    if (replicas[g] > shape.num_slots) return "the budget is broken on rank " + std::to_string(g);
    const auto used = slots.begin() + replicas[g];
    if (!std::is_sorted(slots.begin(), used) ||
        std::count(used, slots.end(), -1) != slots.end() - used) {
      return "slots of rank " + std::to_string(g) + " are not ascending";
    }
  }
  for (const RowRange& range : row_ranges(plan, counts)) {
    placed[static_cast<std::size_t>(range.source) * experts +
           static_cast<std::size_t>(range.expert)] += range.count;
  }
  for (std::size_t i = 0; i < placed.size(); ++i) {
    if (placed[i] != counts[i]) return "rows of one source for one expert are not conserved";
  }
  if (plan.summary.max_blocks != *std::max_element(load.begin(), load.end()) ||
      plan.summary.max_blocks_fixed != *std::max_element(load_fixed.begin(), load_fixed.end())) {
    return "the summary's largest load is not that of the plan";
  }
  return "";
}

/// Counts (P, E) of a random family: even, skewed, one expert, one source, mostly empty.
class RandomCounts {
 public:
  explicit RandomCounts(std::uint64_t seed) : bits_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return bits_() % bound; }

  std::vector<std::int32_t> make(const PlannerShape& shape) {
    const auto ranks = static_cast<std::size_t>(shape.num_ranks);
    const auto experts = static_cast<std::size_t>(shape.num_experts);
    std::vector<std::int32_t> counts(ranks * experts);
    const std::uint64_t kind = below(6), size = std::uint64_t{1} << below(11);
    const std::uint64_t hot = below(experts);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::size_t e = i % experts;
      std::uint64_t most = size;
      if (kind == 1) most = size * experts / ((e + hot) % experts + 1);
      if (kind == 2 && e != hot) most = 0;
      if (kind == 3 && i / experts != hot % ranks) most = 0;
      if (kind == 4 && below(8) != 0) most = 0;
      if (kind == 5) most = below(16) == 0 ? 16 * size : size / 4;
      counts[i] = static_cast<std::int32_t>(below(most + 1));
    }
    return counts;
  }

  PlannerShape make_shape() {
    PlannerShape shape;
    shape.num_ranks = static_cast<std::int32_t>(1 + below(9));
    shape.num_experts = shape.num_ranks + static_cast<std::int32_t>(below(40));
    shape.num_slots = std::min(static_cast<std::int32_t>(below(5)), shape.num_experts);
    const std::int32_t rows[] = {1, 2, 16, 64, 128, 200};
    shape.block_rows = rows[below(6)];
    return shape;
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace tileweave

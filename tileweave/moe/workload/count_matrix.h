// CountMatrix: rows that each source rank sends to each expert. All that a planner sees of a route.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tileweave {

struct CountMatrix {
  std::int32_t num_ranks = 0;
  std::int32_t num_experts = 0;
  std::vector<std::int32_t> counts;  // (P, E)

  std::int32_t& at(std::int32_t rank, std::int32_t expert) {
    return counts[static_cast<std::size_t>(rank) * static_cast<std::size_t>(num_experts) +
                  static_cast<std::size_t>(expert)];
  }
  std::int32_t at(std::int32_t rank, std::int32_t expert) const {
    return counts[static_cast<std::size_t>(rank) * static_cast<std::size_t>(num_experts) +
                  static_cast<std::size_t>(expert)];
  }
  bool operator==(const CountMatrix&) const = default;
};

/// No rows yet. Throws Error unless both are at least 1 and the matrix is of a sensible size.
CountMatrix empty_counts(std::int32_t num_ranks, std::int32_t num_experts);

/// Rows of each expert, all sources.
std::vector<std::int64_t> expert_rows(const CountMatrix& counts);

/// Throws Error unless there is a route with these counts: every rank's counts add up to a multiple
/// of top_k, and no expert has more of them than the rank has tokens.
void require_counts_of_a_route(const CountMatrix& counts, std::int32_t top_k);

}  // namespace tileweave

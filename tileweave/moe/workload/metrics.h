// How uneven a load is, and how much of that a plan takes away. Valid rows only: padding would hide
// what routing does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tileweave/moe/planner/replica_planner.h"
#include "tileweave/moe/workload/count_matrix.h"

namespace tileweave {

/// The three forms of kappa; 1, 1 and 1 for a load that is even.
struct Skew {
  double experts = 1;    // rows of the fullest expert over the mean
  double ranks = 1;      // rows of the fullest rank, fixed placement, over the mean
  double effective = 1;  // (sum T)^2 / (E sum T^2): share of the experts that count
};

/// All 1 where there are no rows.
Skew skew_of(const CountMatrix& counts);

/// Valid rows of each rank under fixed placement.
std::vector<std::int64_t> fixed_rows_by_rank(const CountMatrix& counts);

/// eta: the share of the busiest rank's excess over the mean that is gone; nothing where there was
/// no excess. Negative where it grew.
std::optional<double> removed_excess(std::span<const std::int64_t> rows_before,
                                     std::span<const std::int64_t> rows_after);

}  // namespace tileweave

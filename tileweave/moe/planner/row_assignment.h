// Where each routed row is computed, once a plan says how many blocks of an expert a rank has.
//
// An expert's rows are ordered by (source rank, token, position in the top k) and cut into blocks;
// its holders take them in *copy order*: the owner first, then ascending ranks. So a row's place
// follows from the counts alone: no atomics, the same on every rank. Callers: dispatch, combine,
// tests. The plan and the counts must outlive what is made from them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/moe/planner/replica_planner.h"

namespace tileweave {

/// Where a row is computed; row: among the rows of that expert on that rank.
struct RowPlace {
  std::int32_t rank = 0;
  std::int32_t slot = -1;  // replica slot of the rank; -1: its own expert
  std::int32_t row = 0;
  bool operator==(const RowPlace&) const = default;
};

/// Rows first .. first + count of one source for one expert, in the expert's order, on one rank.
struct RowRange {
  std::int32_t expert = 0, source = 0;
  std::int32_t first = 0, count = 0;
  RowPlace place;  // of the first of them
};

/// All rows, by ascending expert, source and row; no empty ranges.
std::vector<RowRange> row_ranges(const ReplicaPlan& plan, std::span<const std::int32_t> counts);

/// Valid rows that each rank computes.
std::vector<std::int64_t> rows_by_rank(const ReplicaPlan& plan,
                                       std::span<const std::int32_t> counts);

/// Places of one source's assignments: next() once per assignment, ordered by token and position.
class RowPlacer {
 public:
  RowPlacer(const ReplicaPlan& plan, std::span<const std::int32_t> counts, std::int32_t source);
  /// Throws Error for an expert out of range and for more rows than were counted.
  RowPlace next(std::int32_t expert);

 private:
  const ReplicaPlan& plan_;
  std::vector<std::int32_t> row_;  // next row of each expert, in the expert's order
  std::vector<std::int32_t> end_;
};

}  // namespace tileweave

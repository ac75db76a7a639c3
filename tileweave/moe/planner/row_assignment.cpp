#include "tileweave/moe/planner/row_assignment.h"

#include <fmt/format.h>

#include <algorithm>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

/// Calls visit(rank, first block, number of blocks) for each holder with blocks, in copy order.
template <class Visit>
void for_each_holder(const ReplicaPlan& plan, std::int32_t expert, const Visit& visit) {
  const std::int32_t owner = plan.shape.owner_of(expert);
  std::int32_t block = 0;
  const auto holder = [&](std::int32_t rank) {
    const std::int32_t count = plan.of(expert, rank);
    if (count > 0) visit(rank, block, count);
    block += count;
  };
  holder(owner);
  for (std::int32_t g = 0; g < plan.shape.num_ranks; ++g) {
    if (g != owner) holder(g);
  }
}

std::int32_t slot_of(const ReplicaPlan& plan, std::int32_t expert, std::int32_t rank) {
  if (plan.shape.owner_of(expert) == rank) return -1;
  const auto slots = plan.slots(rank);
  return static_cast<std::int32_t>(std::find(slots.begin(), slots.end(), expert) - slots.begin());
}

}  // namespace

std::vector<RowRange> row_ranges(const ReplicaPlan& plan, std::span<const std::int32_t> counts) {
  const PlannerShape& shape = plan.shape;
  std::vector<RowRange> ranges;
  for (std::int32_t e = 0; e < shape.num_experts; ++e) {
    std::int32_t first = 0;
    for (std::int32_t source = 0; source < shape.num_ranks; ++source) {
      const std::int32_t end =
          first + counts[static_cast<std::size_t>(source * shape.num_experts + e)];
      for_each_holder(plan, e, [&](std::int32_t rank, std::int32_t block, std::int32_t count) {
        const std::int32_t begin = block * shape.block_rows;
        const std::int32_t from = std::max(first, begin);
        const std::int32_t to = std::min(end, begin + count * shape.block_rows);
        if (from >= to) return;
        ranges.push_back(
            {e, source, from, to - from, {rank, slot_of(plan, e, rank), from - begin}});
      });
      first = end;
    }
  }
  return ranges;
}

std::vector<std::int64_t> rows_by_rank(const ReplicaPlan& plan,
                                       std::span<const std::int32_t> counts) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(plan.shape.num_ranks));
  for (const RowRange& range : row_ranges(plan, counts)) {
    rows[static_cast<std::size_t>(range.place.rank)] += range.count;
  }
  return rows;
}

RowPlacer::RowPlacer(const ReplicaPlan& plan, std::span<const std::int32_t> counts,
                     std::int32_t source)
    : plan_(plan) {
  const PlannerShape& shape = plan.shape;
  for (std::int32_t e = 0; e < shape.num_experts; ++e) {
    std::int32_t first = 0;
    for (std::int32_t p = 0; p < source; ++p) {
      first += counts[static_cast<std::size_t>(p * shape.num_experts + e)];
    }
    row_.push_back(first);
    end_.push_back(first + counts[static_cast<std::size_t>(source * shape.num_experts + e)]);
  }
}

RowPlace RowPlacer::next(std::int32_t expert) {
  if (expert < 0 || expert >= plan_.shape.num_experts) {
    throw Error("place a row", fmt::format("an expert below {}", plan_.shape.num_experts),
                std::to_string(expert));
  }
  const auto e = static_cast<std::size_t>(expert);
  if (row_[e] >= end_[e]) {
    throw Error("place a row", fmt::format("no more rows for expert {} than were counted", expert),
                "one more");
  }
  const std::int32_t row = row_[e]++, block = row / plan_.shape.block_rows;
  RowPlace place;
  for_each_holder(plan_, expert, [&](std::int32_t rank, std::int32_t first, std::int32_t count) {
    if (block < first || block >= first + count) return;
    place = {rank, slot_of(plan_, expert, rank), row - first * plan_.shape.block_rows};
  });
  return place;
}

}  // namespace tileweave

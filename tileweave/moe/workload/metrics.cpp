#include "tileweave/moe/workload/metrics.h"

#include <algorithm>
#include <numeric>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

double largest_over_mean(const std::vector<std::int64_t>& values) {
  const auto sum =
      static_cast<double>(std::accumulate(values.begin(), values.end(), std::int64_t{0}));
  if (sum == 0) return 1;
  const auto most = static_cast<double>(*std::max_element(values.begin(), values.end()));
  return most * static_cast<double>(values.size()) / sum;
}

}  // namespace

std::vector<std::int64_t> fixed_rows_by_rank(const CountMatrix& counts) {
  const PlannerShape shape{.num_ranks = counts.num_ranks, .num_experts = counts.num_experts};
  require(counts.num_ranks <= counts.num_experts, "count rows by rank",
          "at least one expert per rank", std::to_string(counts.num_experts) + " experts");
  const std::vector<std::int64_t> of_expert = expert_rows(counts);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(counts.num_ranks));
  for (std::int32_t e = 0; e < counts.num_experts; ++e) {
    rows[static_cast<std::size_t>(shape.owner_of(e))] += of_expert[static_cast<std::size_t>(e)];
  }
  return rows;
}

Skew skew_of(const CountMatrix& counts) {
  const std::vector<std::int64_t> rows = expert_rows(counts);
  double sum = 0, squares = 0;
  for (const std::int64_t count : rows) {
    sum += static_cast<double>(count);
    squares += static_cast<double>(count) * static_cast<double>(count);
  }
  return {.experts = largest_over_mean(rows),
          .ranks = largest_over_mean(fixed_rows_by_rank(counts)),
          .effective = squares == 0 ? 1 : sum * sum / (static_cast<double>(rows.size()) * squares)};
}

std::optional<double> removed_excess(std::span<const std::int64_t> rows_before,
                                     std::span<const std::int64_t> rows_after) {
  require(!rows_before.empty() && rows_before.size() == rows_after.size(),
          "compare rows before and after", "as many ranks before as after");
  const std::int64_t before = *std::max_element(rows_before.begin(), rows_before.end());
  const std::int64_t after = *std::max_element(rows_after.begin(), rows_after.end());
  const std::int64_t sum = std::accumulate(rows_before.begin(), rows_before.end(), std::int64_t{0});
  const double excess = static_cast<double>(before) -
                        static_cast<double>(sum) / static_cast<double>(rows_before.size());
  if (excess <= 0) return std::nullopt;
  return static_cast<double>(before - after) / excess;
}

}  // namespace tileweave

#include "tileweave/moe/workload/count_matrix.h"

#include <fmt/format.h>

#include "tileweave/core/error.h"

namespace tileweave {

CountMatrix empty_counts(std::int32_t num_ranks, std::int32_t num_experts) {
  constexpr std::int64_t kMost = std::int64_t{1} << 26;
  if (num_ranks < 1 || num_experts < 1 ||
      static_cast<std::int64_t>(num_ranks) * num_experts > kMost) {
    throw Error("make a count matrix", "1 to 2^26 pairs of rank and expert",
                fmt::format("{} ranks and {} experts", num_ranks, num_experts));
  }
  CountMatrix matrix{num_ranks, num_experts, {}};
  matrix.counts.resize(static_cast<std::size_t>(num_ranks) * static_cast<std::size_t>(num_experts));
  return matrix;
}

std::vector<std::int64_t> expert_rows(const CountMatrix& counts) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(counts.num_experts));
  for (std::int32_t p = 0; p < counts.num_ranks; ++p) {
    for (std::int32_t e = 0; e < counts.num_experts; ++e) {
      rows[static_cast<std::size_t>(e)] += counts.at(p, e);
    }
  }
  return rows;
}

void require_counts_of_a_route(const CountMatrix& counts, std::int32_t top_k) {
  constexpr const char* kCheck = "check counts against the top k";
  require(top_k >= 1 && top_k <= counts.num_experts, kCheck,
          "a top k of 1 to the experts there are", std::to_string(top_k));
  for (std::int32_t p = 0; p < counts.num_ranks; ++p) {
    std::int64_t sum = 0;
    for (std::int32_t e = 0; e < counts.num_experts; ++e) sum += counts.at(p, e);
    if (sum % top_k != 0) {
      throw Error(kCheck,
                  fmt::format("counts of rank {} that add up to a multiple of {}", p, top_k),
                  std::to_string(sum));
    }
    for (std::int32_t e = 0; e < counts.num_experts; ++e) {
      if (counts.at(p, e) <= sum / top_k) continue;
      throw Error(
          kCheck,
          fmt::format("at most {} rows of rank {} for expert {}, one per token", sum / top_k, p, e),
          std::to_string(counts.at(p, e)));
    }
  }
}

}  // namespace tileweave

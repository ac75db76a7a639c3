#include "tileweave/moe/workload/route.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

void check_rows(std::span<const std::int64_t> rows, const RouteShape& shape) {
  constexpr const char* kDeal = "deal rows to tokens";
  const auto experts = static_cast<std::int64_t>(rows.size());
  require(shape.num_ranks >= 1 && shape.tokens_per_rank >= 0, kDeal, "at least one rank", "none");
  if (shape.top_k < 1 || shape.top_k > experts) {
    throw Error(kDeal, fmt::format("a top k of 1 to {}, the number of experts", experts),
                std::to_string(shape.top_k));
  }
  const std::int64_t tokens = static_cast<std::int64_t>(shape.num_ranks) * shape.tokens_per_rank;
  const std::int64_t sum = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  if (sum != tokens * shape.top_k) {
    throw Error(kDeal,
                fmt::format("rows that add up to {} tokens x top {} = {}", tokens, shape.top_k,
                            tokens * shape.top_k),
                std::to_string(sum));
  }
  for (std::size_t e = 0; e < rows.size(); ++e) {
    if (rows[e] >= 0 && rows[e] <= tokens) continue;
    throw Error(kDeal, fmt::format("0 to {} rows for expert {}, one per token", tokens, e),
                std::to_string(rows[e]));
  }
}

bool has(const std::int32_t* token, std::int32_t top_k, std::int32_t id) {
  return std::find(token, token + top_k, id) != token + top_k;
}

/// Swaps that keep every token's experts different, then tokens in random order.
void mix(std::vector<std::int32_t>& ids, std::int32_t top_k, std::mt19937_64& bits) {
  const std::size_t k = static_cast<std::size_t>(top_k), tokens = ids.size() / k;
  if (tokens < 2) return;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t j = bits() % ids.size();
    const std::size_t a = i / k, b = j / k;
    if (a == b || has(&ids[a * k], top_k, ids[j]) || has(&ids[b * k], top_k, ids[i])) continue;
    std::swap(ids[i], ids[j]);
  }
  for (std::size_t t = tokens; t > 1; --t) {
    const std::size_t other = bits() % t;
    if (other == t - 1) continue;
    std::swap_ranges(ids.begin() + static_cast<std::ptrdiff_t>((t - 1) * k),
                     ids.begin() + static_cast<std::ptrdiff_t>(t * k),
                     ids.begin() + static_cast<std::ptrdiff_t>(other * k));
  }
}

}  // namespace

void check(const Route& route) {
  constexpr const char* kCheck = "check a route";
  if (route.top_k < 1 || route.top_k > route.num_experts) {
    throw Error(kCheck, fmt::format("a top k of 1 to {}, the number of experts", route.num_experts),
                std::to_string(route.top_k));
  }
  const auto k = static_cast<std::size_t>(route.top_k);
  for (std::size_t rank = 0; rank < route.ids.size(); ++rank) {
    const auto& ids = route.ids[rank];
    if (ids.size() % k != 0) {
      throw Error(kCheck, fmt::format("{} ids for each token of rank {}", k, rank),
                  fmt::format("{} ids", ids.size()));
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < -1 || ids[i] >= route.num_experts) {
        throw Error(kCheck,
                    fmt::format("expert ids of -1 to {} (rank {}, token {})", route.num_experts - 1,
                                rank, i / k),
                    std::to_string(ids[i]));
      }
      const auto token = ids.begin() + static_cast<std::ptrdiff_t>(i / k * k);
      const auto here = ids.begin() + static_cast<std::ptrdiff_t>(i);
      if (ids[i] >= 0 && std::find(token, here, ids[i]) != here) {
        throw Error(kCheck, fmt::format("different experts for token {} of rank {}", i / k, rank),
                    fmt::format("expert {} twice", ids[i]));
      }
    }
  }
}

CountMatrix counts_of(const Route& route) {
  CountMatrix counts = empty_counts(std::max(1, route.num_ranks()), route.num_experts);
  for (std::int32_t rank = 0; rank < route.num_ranks(); ++rank) {
    for (const std::int32_t id : route.ids[static_cast<std::size_t>(rank)]) {
      if (id >= 0) ++counts.at(rank, id);
    }
  }
  return counts;
}

CountMatrix deal_counts(std::span<const std::int64_t> expert_rows, const RouteShape& shape) {
  check_rows(expert_rows, shape);
  CountMatrix counts = empty_counts(shape.num_ranks, static_cast<std::int32_t>(expert_rows.size()));
  const std::int64_t ranks = shape.num_ranks;
  std::int64_t begin = 0;
  for (std::int32_t e = 0; e < counts.num_experts; ++e) {
    const std::int64_t end = begin + expert_rows[static_cast<std::size_t>(e)];
    for (std::int64_t p = 0; p < ranks; ++p) {
      // Positions below x that are dealt to rank p: ceil((x - p) / ranks).
      const auto below = [&](std::int64_t x) { return x <= p ? 0 : (x - p + ranks - 1) / ranks; };
      counts.at(static_cast<std::int32_t>(p), e) =
          static_cast<std::int32_t>(below(end) - below(begin));
    }
    begin = end;
  }
  return counts;
}

Route deal_route(std::span<const std::int64_t> expert_rows, const RouteShape& shape,
                 std::uint64_t seed) {
  const CountMatrix counts = deal_counts(expert_rows, shape);
  Route route{counts.num_experts, shape.top_k, {}};
  const auto tokens = static_cast<std::size_t>(shape.tokens_per_rank);
  const auto k = static_cast<std::size_t>(shape.top_k);
  for (std::int32_t rank = 0; rank < shape.num_ranks; ++rank) {
    // Position j of the rank goes to token j mod M: an expert's run never meets a token twice.
    std::vector<std::int32_t> ids(tokens * k);
    std::size_t j = 0;
    for (std::int32_t e = 0; e < counts.num_experts; ++e) {
      for (std::int32_t i = 0; i < counts.at(rank, e); ++i, ++j) {
        ids[j % tokens * k + j / tokens] = e;
      }
    }
    std::mt19937_64 bits(seed * 1'000'003 + static_cast<std::uint64_t>(rank));
    mix(ids, shape.top_k, bits);
    route.ids.push_back(std::move(ids));
  }
  return route;
}

Route split_over_ranks(const Route& route, std::int32_t num_ranks) {
  require(num_ranks >= 1, "split a route over ranks", "at least one rank",
          std::to_string(num_ranks));
  std::vector<std::int32_t> all;
  for (const auto& ids : route.ids) all.insert(all.end(), ids.begin(), ids.end());
  const std::int64_t tokens = static_cast<std::int64_t>(all.size()) / route.top_k;
  Route split{route.num_experts, route.top_k, {}};
  auto begin = all.begin();
  for (std::int32_t rank = 0; rank < num_ranks; ++rank) {
    const std::int64_t count = tokens / num_ranks + (rank < tokens % num_ranks ? 1 : 0);
    const auto end = begin + static_cast<std::ptrdiff_t>(count * route.top_k);
    split.ids.emplace_back(begin, end);
    begin = end;
  }
  return split;
}

Route balanced_twin(const Route& route) {
  check(route);
  Route twin = route;
  std::int32_t next = 0;  // a token's ids follow one another in the cycle of experts
  for (auto& ids : twin.ids) {
    for (std::int32_t& id : ids) {
      if (id < 0) continue;
      id = next;
      next = (next + 1) % route.num_experts;
    }
  }
  return twin;
}

std::vector<std::vector<float>> seeded_weights(const Route& route, std::uint64_t seed) {
  const auto k = static_cast<std::size_t>(route.top_k);
  std::vector<std::vector<float>> weights;
  for (std::size_t rank = 0; rank < route.ids.size(); ++rank) {
    const auto& ids = route.ids[rank];
    std::mt19937_64 bits(seed * 1'000'033 + rank);
    std::vector<float> of_rank(ids.size());
    for (std::size_t token = 0; token * k < ids.size(); ++token) {
      double sum = 0;
      std::vector<double> scores(k);
      for (std::size_t i = 0; i < k; ++i) {
        const double score = 4 * static_cast<double>(bits() >> 11) * 0x1p-53;
        scores[i] = ids[token * k + i] < 0 ? 0 : std::exp(score);
        sum += scores[i];
      }
      for (std::size_t i = 0; i < k && sum > 0; ++i) {
        of_rank[token * k + i] = static_cast<float>(scores[i] / sum);
      }
    }
    weights.push_back(std::move(of_rank));
  }
  return weights;
}

}  // namespace tileweave

#include "tileweave/moe/workload/expert_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

// std:: distributions differ between standard libraries; these do not.
double uniform(std::mt19937_64& bits) {
  return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53;
}

double normal(std::mt19937_64& bits) {
  const double radius = std::sqrt(-2 * std::log(uniform(bits)));
  return radius * std::cos(2 * 3.14159265358979323846 * uniform(bits));
}

/// Marsaglia and Tsang; shapes below 1 by way of shape + 1.
double gamma(double shape, std::mt19937_64& bits) {
  if (shape < 1) {
    const double larger = gamma(shape + 1, bits);
    return larger * std::pow(uniform(bits), 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal(bits), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(uniform(bits)) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace

std::string to_string(const LoadDistribution& distribution) {
  switch (distribution.family) {
    case LoadFamily::kBalanced:
      return "balanced";
    case LoadFamily::kZipf:
      return fmt::format("zipf {:g}", distribution.parameter);
    case LoadFamily::kLogNormal:
      return fmt::format("log-normal {:g}", distribution.parameter);
    case LoadFamily::kDirichlet:
      return fmt::format("dirichlet {:g}", distribution.parameter);
  }
  return "?";
}

std::vector<double> expert_shares(const LoadDistribution& distribution, std::int32_t num_experts,
                                  std::uint64_t seed) {
  constexpr const char* kMake = "make a load of experts";
  require(num_experts >= 1, kMake, "at least one expert", std::to_string(num_experts));
  const double parameter = distribution.parameter;
  const double least = distribution.family == LoadFamily::kDirichlet ? 1e-3 : 0;
  require(parameter >= least && parameter <= 1000, kMake,
          "a parameter of 0 (Dirichlet: 0.001) to 1000", fmt::format("{:g}", parameter));
  std::mt19937_64 bits(seed);
  std::vector<double> shares(static_cast<std::size_t>(num_experts), 1.0);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double rank = static_cast<double>(i) + 1;
    if (distribution.family == LoadFamily::kZipf) shares[i] = std::pow(rank, -parameter);
    if (distribution.family == LoadFamily::kLogNormal) {
      // Above 700 an exponential would overflow; such a share is all there is anyway.
      shares[i] = std::exp(std::clamp(parameter * normal(bits), -700.0, 700.0));
    }
    if (distribution.family == LoadFamily::kDirichlet) shares[i] = gamma(parameter, bits);
  }
  return shares;
}

std::vector<std::int64_t> rows_of_shares(std::span<const double> shares, const LoadTotals& totals) {
  constexpr const char* kMake = "bring expert shares to rows";
  const auto experts = static_cast<std::int64_t>(shares.size());
  require(totals.rows >= 0 && totals.most_per_expert >= 0, kMake, "no negative number of rows", "");
  if (experts == 0 || totals.rows > experts * totals.most_per_expert) {
    throw Error(
        kMake,
        fmt::format("at most {} rows for each of {} experts", totals.most_per_expert, experts),
        fmt::format("{} rows in all", totals.rows));
  }
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  // Largest first: who would pass the limit gets the limit, the others share what is left.
  double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  auto left = static_cast<double>(totals.rows);
  const auto most = static_cast<double>(totals.most_per_expert);
  std::vector<double> exact(shares.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double share = shares[order[i]];
    const double even = left / static_cast<double>(order.size() - i);
    const double wanted = sum > 0 && std::isfinite(sum) ? left * (share / sum) : even;
    exact[order[i]] = std::clamp(wanted, 0.0, std::min(most, left));
    left -= exact[order[i]];
    sum -= share;
  }
  std::vector<std::int64_t> rows(shares.size());
  std::int64_t missing = totals.rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<std::int64_t>(std::floor(exact[i]));
    missing -= rows[i];
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return exact[a] - std::floor(exact[a]) > exact[b] - std::floor(exact[b]);
  });
  for (std::size_t i = 0; missing > 0; i = (i + 1) % order.size()) {
    std::int64_t& to = rows[order[i]];
    if (to >= totals.most_per_expert) continue;
    ++to;
    --missing;
  }
  // Rounding of the sums above may have given a row too many to some.
  for (std::size_t i = 0; missing < 0; i = (i + 1) % order.size()) {
    std::int64_t& from = rows[order[order.size() - 1 - i]];
    if (from == 0) continue;
    --from;
    ++missing;
  }
  return rows;
}

void permute(std::vector<std::int64_t>& values, std::mt19937_64& bits) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[bits() % i]);
}

std::vector<std::int64_t> expert_load(const LoadDistribution& distribution,
                                      std::int32_t num_experts, const LoadTotals& totals,
                                      std::uint64_t seed) {
  std::vector<std::int64_t> rows =
      rows_of_shares(expert_shares(distribution, num_experts, seed), totals);
  std::mt19937_64 bits(seed ^ 0x9e3779b97f4a7c15U);
  permute(rows, bits);
  return rows;
}

std::vector<double> resized_shares(std::span<const std::int64_t> histogram,
                                   std::int32_t num_experts) {
  constexpr const char* kResize = "resize a histogram";
  require(!histogram.empty() && num_experts >= 1, kResize, "at least one expert before and after",
          "none");
  std::vector<std::int64_t> sorted(histogram.begin(), histogram.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  require(sorted.back() >= 0 && sorted.front() > 0, kResize, "counts of at least 0, not all 0", "");
  std::vector<double> cumulative{0};
  for (const std::int64_t count : sorted) {
    cumulative.push_back(cumulative.back() + static_cast<double>(count));
  }
  const auto at = [&](std::int32_t i) {
    const double place = static_cast<double>(i) * static_cast<double>(sorted.size()) / num_experts;
    const std::size_t below = std::min(static_cast<std::size_t>(place), sorted.size() - 1);
    return cumulative[below] +
           (place - static_cast<double>(below)) * static_cast<double>(sorted[below]);
  };
  std::vector<double> shares(static_cast<std::size_t>(num_experts));
  for (std::int32_t i = 0; i < num_experts; ++i) {
    shares[static_cast<std::size_t>(i)] = at(i + 1) - at(i);
  }
  return shares;
}

}  // namespace tileweave

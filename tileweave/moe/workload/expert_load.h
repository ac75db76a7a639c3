// How many rows each expert gets: families of distributions, and histograms brought to a size.
//
// expert_load() scales shares to a number of rows, never more than one row per token for an expert
// (what is above is spread over the others in proportion), rounds by largest remainder, and
// permutes the expert ids by a seed. The same seed gives the same numbers on every machine with
// IEEE arithmetic and the same libm. Throws Error for parameters that make no sense.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace tileweave {

enum class LoadFamily : std::uint8_t { kBalanced, kZipf, kLogNormal, kDirichlet };

struct LoadDistribution {
  LoadFamily family = LoadFamily::kBalanced;
  double parameter = 0;  // Zipf: exponent; log-normal: sigma; Dirichlet: concentration
  bool operator==(const LoadDistribution&) const = default;
};

/// "zipf 0.9", "log-normal 0.5", "dirichlet 0.3", "balanced".
std::string to_string(const LoadDistribution& distribution);

/// Shares of `num_experts` experts, positive, of any sum, not permuted.
std::vector<double> expert_shares(const LoadDistribution& distribution, std::int32_t num_experts,
                                  std::uint64_t seed);

struct LoadTotals {
  std::int64_t rows = 0;             // of all experts together
  std::int64_t most_per_expert = 0;  // tokens of all ranks
};

/// Rows per expert in the order of `shares`; they add up to totals.rows exactly.
std::vector<std::int64_t> rows_of_shares(std::span<const double> shares, const LoadTotals& totals);

std::vector<std::int64_t> expert_load(const LoadDistribution& distribution,
                                      std::int32_t num_experts, const LoadTotals& totals,
                                      std::uint64_t seed);

/// Shares of `num_experts` experts with the shape of a recorded histogram of any size: sorted
/// descending, its cumulative share read off at equal steps. Descending.
std::vector<double> resized_shares(std::span<const std::int64_t> histogram,
                                   std::int32_t num_experts);

/// In place, by Fisher and Yates; the same on every machine.
void permute(std::vector<std::int64_t>& values, std::mt19937_64& bits);

}  // namespace tileweave

#include "tileweave/moe/workload/configurations.h"

#include <fmt/format.h>

namespace tileweave {
namespace {

RouteShape shape_of(const WorkloadConfiguration& c) {
  return {.num_ranks = c.num_ranks, .tokens_per_rank = c.tokens_per_rank, .top_k = c.top_k};
}

}  // namespace

std::vector<WorkloadConfiguration> evaluation_configurations() {
  const LoadDistribution loads[] = {{LoadFamily::kZipf, 0.3},      {LoadFamily::kZipf, 0.6},
                                    {LoadFamily::kZipf, 0.9},      {LoadFamily::kZipf, 1.2},
                                    {LoadFamily::kLogNormal, 0.5}, {LoadFamily::kLogNormal, 1.0},
                                    {LoadFamily::kBalanced, 0.0}};
  std::vector<WorkloadConfiguration> all;
  for (const std::int32_t experts : {128, 256, 64}) {
    for (std::int32_t tokens = 512; tokens <= 32768; tokens *= 2) {
      for (const LoadDistribution& load : loads) {
        all.push_back({.num_experts = experts, .tokens_per_rank = tokens, .load = load});
      }
    }
  }
  return all;
}

std::string to_string(const WorkloadConfiguration& c) {
  const bool synthetic =
      c.load.family == LoadFamily::kLogNormal || c.load.family == LoadFamily::kDirichlet;
  return fmt::format("{} experts, top {}, {} tokens, {}{}", c.num_experts, c.top_k,
                     c.tokens_per_rank, to_string(c.load), synthetic ? " (synthetic)" : "");
}

std::vector<std::int64_t> expert_load(const WorkloadConfiguration& c, std::uint64_t seed) {
  const std::int64_t tokens = static_cast<std::int64_t>(c.num_ranks) * c.tokens_per_rank;
  return expert_load(c.load, c.num_experts, {.rows = tokens * c.top_k, .most_per_expert = tokens},
                     seed);
}

CountMatrix counts_of(const WorkloadConfiguration& c, std::uint64_t seed) {
  return deal_counts(expert_load(c, seed), shape_of(c));
}

Route route_of(const WorkloadConfiguration& c, std::uint64_t seed) {
  return deal_route(expert_load(c, seed), shape_of(c), seed);
}

}  // namespace tileweave

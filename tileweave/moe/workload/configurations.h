// The 147 workload configurations that plans are compared on, per direction:
//   (experts, top k)  (128, 8), (256, 8), (64, 8)
//   tokens per rank   512, 1024 .. 32768
//   load              Zipf 0.3, 0.6, 0.9, 1.2; log-normal 0.5, 1.0; balanced
// 8 ranks, seeds 1, 2, 3. The two log-normal loads are synthetic: they stand in for the paper's
// private traces. The other 126 are those that are not balanced.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/moe/workload/expert_load.h"
#include "tileweave/moe/workload/route.h"

namespace tileweave {

struct WorkloadConfiguration {
  std::int32_t num_ranks = 8;
  std::int32_t num_experts = 128;
  std::int32_t top_k = 8;
  std::int32_t tokens_per_rank = 8192;
  LoadDistribution load;

  bool is_balanced() const { return load.family == LoadFamily::kBalanced; }
};

inline constexpr std::array<std::uint64_t, 3> kWorkloadSeeds = {1, 2, 3};

std::vector<WorkloadConfiguration> evaluation_configurations();

/// "128 experts, top 8, 8192 tokens, log-normal 0.5 (synthetic)".
std::string to_string(const WorkloadConfiguration& configuration);

std::vector<std::int64_t> expert_load(const WorkloadConfiguration& configuration,
                                      std::uint64_t seed);
CountMatrix counts_of(const WorkloadConfiguration& configuration, std::uint64_t seed);
Route route_of(const WorkloadConfiguration& configuration, std::uint64_t seed);

}  // namespace tileweave

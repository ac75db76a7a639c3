// Route: which experts every token of every rank goes to.
//
// deal_route() builds one for any number of rows per expert that is possible at all (no expert more
// rows than there are tokens): rows are dealt to the ranks in turn, so every rank has the same
// number of tokens and every token top_k different experts. All methods under comparison get the
// same route. An id of -1 is a masked assignment: it is computed nowhere. Throws Error in one
// sentence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/moe/workload/count_matrix.h"

namespace tileweave {

struct Route {
  std::int32_t num_experts = 0;
  std::int32_t top_k = 0;
  std::vector<std::vector<std::int32_t>> ids;  // per rank (tokens, top_k)

  std::int32_t num_ranks() const { return static_cast<std::int32_t>(ids.size()); }
  std::int64_t num_tokens(std::int32_t rank) const {
    return static_cast<std::int64_t>(ids[static_cast<std::size_t>(rank)].size()) / top_k;
  }
  bool operator==(const Route&) const = default;
};

struct RouteShape {
  std::int32_t num_ranks = 8;
  std::int32_t tokens_per_rank = 8192;
  std::int32_t top_k = 8;
};

/// Refuses ids out of range and an expert twice in one token.
void check(const Route& route);
CountMatrix counts_of(const Route& route);

/// The counts of deal_route() for these rows per expert, without making the route.
CountMatrix deal_counts(std::span<const std::int64_t> expert_rows, const RouteShape& shape);
/// `seed` mixes the tokens of a rank; it does not change the counts.
Route deal_route(std::span<const std::int64_t> expert_rows, const RouteShape& shape,
                 std::uint64_t seed);

/// The tokens of all ranks, in order, as equal contiguous parts for `num_ranks` ranks; the first
/// ones have one more where that does not divide.
Route split_over_ranks(const Route& route, std::int32_t num_ranks);

/// The same ranks, tokens and masks with as many rows for every expert, give or take one.
Route balanced_twin(const Route& route);

/// Weights for a route, per rank (tokens, top_k): softmax of seeded scores, 0 where masked.
std::vector<std::vector<float>> seeded_weights(const Route& route, std::uint64_t seed);

}  // namespace tileweave

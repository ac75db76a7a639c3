#include "cli/moe_source.h"

#include <fmt/format.h>

#include <map>

#include "tileweave/core/error.h"
#include "tileweave/moe/workload/counts_csv.h"
#include "tileweave/moe/workload/trace_jsonl.h"

namespace tileweave::cli {
namespace {

MoeLoad from_counts(const MoeSource& source) {
  const CountMatrix counts = read_counts_csv(
      source.counts_file,
      {.num_ranks = source.ranks.value_or(0), .num_experts = source.experts.value_or(0)});
  if (source.top_k) require_counts_of_a_route(counts, *source.top_k);
  return {source.counts_file, counts, std::nullopt};
}

MoeLoad from_trace(const MoeSource& source) {
  std::map<std::int32_t, Route> routes =
      read_trace(source.trace_file, {.num_experts = source.experts.value_or(0)});
  const auto found = source.layer ? routes.find(*source.layer) : routes.begin();
  if (found == routes.end()) {
    throw Error("read " + source.trace_file, fmt::format("lines of layer {}", *source.layer),
                fmt::format("layers {} to {}", routes.begin()->first, routes.rbegin()->first));
  }
  Route route = std::move(found->second);
  if (source.top_k && *source.top_k != route.top_k) {
    throw Error("read " + source.trace_file,
                fmt::format("{} expert ids for each token", *source.top_k),
                std::to_string(route.top_k));
  }
  std::string name = fmt::format("{}, layer {}", source.trace_file, found->first);
  if (source.ranks && *source.ranks != route.num_ranks()) {
    name += fmt::format(", split from {} ranks", route.num_ranks());
    route = split_over_ranks(route, *source.ranks);
  }
  CountMatrix counts = counts_of(route);
  return {std::move(name), std::move(counts), std::move(route)};
}

}  // namespace

MoeLoad read_source(const MoeSource& source, WithRoute with_route) {
  if (!source.counts_file.empty()) return from_counts(source);
  if (!source.trace_file.empty()) return from_trace(source);
  const WorkloadConfiguration configuration{.num_ranks = source.ranks.value_or(8),
                                            .num_experts = source.experts.value_or(128),
                                            .top_k = source.top_k.value_or(8),
                                            .tokens_per_rank = source.tokens,
                                            .load = {source.family, source.parameter}};
  MoeLoad load{fmt::format("{}, seed {}", to_string(configuration), source.seed),
               counts_of(configuration, source.seed), std::nullopt};
  if (with_route == WithRoute::kYes) load.route = route_of(configuration, source.seed);
  return load;
}

}  // namespace tileweave::cli

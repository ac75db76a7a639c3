// Routing traces as JSONL: one object a line, {"layer": 0, "rank": 1, "topk_ids": [[3, 17], [9,
// 3]]}.
//
// `topk_ids` has the expert ids of each token, best first, -1 where an assignment is masked;
// further keys are ignored. Lines of one layer and rank follow one another in the route, step after
// step. A recorder in a model writes the same lines with to_trace_line(). Whatever is wrong with a
// line is an Error naming the file and the line.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "tileweave/moe/workload/route.h"

namespace tileweave {

struct TraceOptions {
  std::int32_t num_experts = 0;  // 0: the highest id in the file, and one
  std::int32_t num_ranks = 0;    // 0: the highest rank in the file, and one
};

/// By layer. Every layer has all ranks, some perhaps without tokens.
std::map<std::int32_t, Route> read_trace(const std::string& path, const TraceOptions& options = {});
/// `name` stands for the file in errors.
std::map<std::int32_t, Route> parse_trace(std::string_view text, const std::string& name,
                                          const TraceOptions& options = {});

/// With the line break. `ids`: (tokens, top_k).
std::string to_trace_line(std::int32_t layer, std::int32_t rank, std::int32_t top_k,
                          std::span<const std::int32_t> ids);
/// A line for each rank.
std::string to_trace(std::int32_t layer, const Route& route);

}  // namespace tileweave

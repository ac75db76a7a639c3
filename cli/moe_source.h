// Where the verbs of `tileweave moe` get a load from: a distribution, counts or a recorded trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/moe/workload/configurations.h"

namespace tileweave::cli {

struct MoeSource {
  std::optional<std::int32_t> ranks, experts, top_k;  // 8, 128, 8 unless a file says otherwise
  std::int32_t tokens = 8192;                         // per rank
  LoadFamily family = LoadFamily::kZipf;
  double parameter = 0.9;
  std::uint64_t seed = 1;
  std::string counts_file;  // CSV
  std::string trace_file;   // JSONL
  std::optional<std::int32_t> layer;
};

struct MoeLoad {
  std::string name;  // for people
  CountMatrix counts;
  std::optional<Route> route;  // not for counts, and not made unless asked for
};

enum class WithRoute : bool { kNo, kYes };

/// Throws Error naming file and line.
MoeLoad read_source(const MoeSource& source, WithRoute with_route);

}  // namespace tileweave::cli

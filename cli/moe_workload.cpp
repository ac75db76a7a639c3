#include "cli/moe_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "cli/command_line.h"
#include "tileweave/core/atomic_file.h"
#include "tileweave/core/error.h"
#include "tileweave/moe/workload/counts_csv.h"
#include "tileweave/moe/workload/metrics.h"
#include "tileweave/moe/workload/trace_jsonl.h"
#include "tileweave/trace/escape.h"

namespace tileweave::cli {
namespace {

constexpr std::size_t kHottest = 5;

Json kappa_json(const Skew& skew) {
  return {{"experts", skew.experts}, {"ranks", skew.ranks}, {"effective_experts", skew.effective}};
}

int list_configurations(const MoeWorkloadOptions& options, std::ostream& out) {
  Json all = Json::array();
  if (options.form == OutputForm::kTable) {
    out << fmt::format("{:>7} {:>5} {:>11}  {:<15} {:>13} {:>11} {:>9}\n", "experts", "top k",
                       "tokens/rank", "load", "kappa experts", "kappa ranks", "effective");
  }
  for (const WorkloadConfiguration& c : evaluation_configurations()) {
    const Skew skew = skew_of(counts_of(c, options.source.seed));
    if (options.form == OutputForm::kTable) {
      out << fmt::format("{:>7} {:>5} {:>11}  {:<15} {:>13.2f} {:>11.2f} {:>9.2f}\n", c.num_experts,
                         c.top_k, c.tokens_per_rank, to_string(c.load), skew.experts, skew.ranks,
                         skew.effective);
      continue;
    }
    all.push_back({{"ranks", c.num_ranks},
                   {"experts", c.num_experts},
                   {"top_k", c.top_k},
                   {"tokens_per_rank", c.tokens_per_rank},
                   {"load", to_string(c.load)},
                   {"kappa", kappa_json(skew)}});
  }
  if (options.form == OutputForm::kJson) {
    out << to_text({{"verb", "moe workload"},
                    {"seed", options.source.seed},
                    {"configurations", std::move(all)}});
  }
  return kSuccess;
}

MoeLoad load_of(const MoeWorkloadOptions& options) {
  const bool needs_route = options.balanced_twin || !options.trace_out.empty();
  MoeLoad load = read_source(options.source, needs_route ? WithRoute::kYes : WithRoute::kNo);
  if (needs_route && !load.route) {
    throw Error("make a route of " + load.name, "a trace or a distribution",
                "counts, which many routes have");
  }
  if (options.balanced_twin) {
    load.route = balanced_twin(*load.route);
    load.counts = counts_of(*load.route);
    load.name += ", balanced twin";
  }
  return load;
}

/// Experts by falling rows.
std::vector<std::size_t> hottest(const std::vector<std::int64_t>& rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rows[a] > rows[b]; });
  order.resize(std::min(order.size(), kHottest));
  return order;
}

}  // namespace

int moe_workload(const MoeWorkloadOptions& options, std::ostream& out, std::ostream& err) {
  if (options.list) return list_configurations(options, out);
  const MoeLoad load = load_of(options);
  const Skew skew = skew_of(load.counts);
  const std::vector<std::int64_t> rows = expert_rows(load.counts);
  const std::vector<std::int64_t> ranks = fixed_rows_by_rank(load.counts);
  const std::int64_t total = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  if (!options.counts_out.empty()) {
    write_file_atomically(options.counts_out, to_counts_csv(load.counts));
    err << fmt::format("counts: {}\n", printable(options.counts_out));
  }
  if (!options.trace_out.empty()) {
    write_file_atomically(options.trace_out,
                          to_trace(options.source.layer.value_or(0), *load.route));
    err << fmt::format("trace: {}\n", printable(options.trace_out));
  }
  if (options.form == OutputForm::kJson) {
    out << to_text({{"verb", "moe workload"},
                    {"workload", load.name},
                    {"ranks", load.counts.num_ranks},
                    {"experts", load.counts.num_experts},
                    {"rows", total},
                    {"kappa", kappa_json(skew)},
                    {"rows_by_expert", rows},
                    {"rows_by_rank", ranks}});
    return kSuccess;
  }
  const auto line = [&](const char* what, const std::string& value) {
    out << fmt::format("{:<10}{}\n", what, value);
  };
  line("workload", printable(load.name));
  line("rows", fmt::format("{} on {} ranks for {} experts", total, load.counts.num_ranks,
                           load.counts.num_experts));
  line("kappa", fmt::format("experts {:.2f}, ranks {:.2f}, effective experts {:.2f}", skew.experts,
                            skew.ranks, skew.effective));
  std::string hot;
  for (const std::size_t e : hottest(rows)) {
    hot += fmt::format("{}{} ({})", hot.empty() ? "" : ", ", e, rows[e]);
  }
  line("hottest", "expert (rows): " + hot);
  std::string by_rank;
  for (const std::int64_t count : ranks) by_rank += fmt::format(" {}", count);
  line("by rank", by_rank.substr(1) + ", fixed placement");
  return kSuccess;
}

}  // namespace tileweave::cli

#include "cli/moe_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "cli/command_line.h"
#include "cli/moe_svg.h"
#include "tileweave/core/atomic_file.h"
#include "tileweave/core/error.h"
#include "tileweave/moe/planner/row_assignment.h"
#include "tileweave/moe/workload/metrics.h"
#include "tileweave/trace/escape.h"

namespace tileweave::cli {
namespace {

constexpr int kTimedRuns = 101;

const char* name_of(MoePreset preset) {
  return preset == MoePreset::kPaper ? "paper" : "tuned";
}

const char* name_of(PlanMethod method) {
  switch (method) {
    case PlanMethod::kSearches:
      return "searches";
    case PlanMethod::kBisection:
      return "bisection";
    case PlanMethod::kPacking:
      return "packing";
  }
  return "?";
}

const char* name_of(PlanObjective objective) {
  return objective == PlanObjective::kLoadOnly ? "forward" : "backward";
}

double in_blocks(std::int64_t time) {
  return static_cast<double>(time) / kTimeUnit;
}

PlannerOptions planner_options(const MoePlanOptions& options, const CountMatrix& counts) {
  PlannerShape shape =
      shape_with_default_slots(counts.num_ranks, counts.num_experts, options.block_rows);
  if (options.slots) shape.num_slots = *options.slots;
  PlannerOptions made = options.preset == MoePreset::kPaper
                            ? paper_preset(shape, options.objective)
                            : tuned_preset(shape, options.objective, options.rates);
  made.method = options.method;
  if (options.lambda) {
    made.lambda = static_cast<std::int32_t>(std::lround(*options.lambda * kTimeUnit));
  }
  if (options.gate) made.gate = *options.gate;
  if (options.slack_percent) {
    made.slack = static_cast<std::int32_t>(std::lround(*options.slack_percent * kSlackUnit / 100));
  }
  return made;
}

struct RankLine {
  std::int64_t rows_before = 0, rows_own = 0, rows_replicas = 0;
  std::int64_t blocks_before = 0, blocks_after = 0;
  std::int32_t exported = 0;
  std::vector<std::int32_t> slots;

  std::int64_t rows_after() const { return rows_own + rows_replicas; }
};

struct Report {
  PlannerOptions options;
  PlanSummary summary = {};
  Skew skew;
  std::vector<RankLine> ranks = {};
  std::optional<double> eta = std::nullopt;
  double microseconds = 0;  // median

  double gain() const {
    return summary.predicted_fixed == 0 ? 1
                                        : static_cast<double>(summary.predicted) /
                                              static_cast<double>(summary.predicted_fixed);
  }
};

double time_of_plan(ReplicaPlanner& planner, const CountMatrix& counts) {
  std::vector<double> times;
  for (int i = 0; i < kTimedRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    planner.plan(counts.counts);
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::nth_element(times.begin(), times.begin() + kTimedRuns / 2, times.end());
  return times[kTimedRuns / 2];
}

std::vector<RankLine> lines_of(const ReplicaPlan& plan, const CountMatrix& counts) {
  const PlannerShape& shape = plan.shape;
  std::vector<RankLine> ranks(static_cast<std::size_t>(shape.num_ranks));
  const std::vector<std::int64_t> before = fixed_rows_by_rank(counts);
  for (const RowRange& range : row_ranges(plan, counts.counts)) {
    RankLine& rank = ranks[static_cast<std::size_t>(range.place.rank)];
    (range.place.slot < 0 ? rank.rows_own : rank.rows_replicas) += range.count;
  }
  for (std::int32_t g = 0; g < shape.num_ranks; ++g) {
    RankLine& rank = ranks[static_cast<std::size_t>(g)];
    rank.rows_before = before[static_cast<std::size_t>(g)];
    for (const std::int32_t expert : plan.slots(g)) {
      if (expert < 0) continue;
      rank.slots.push_back(expert);
      ++ranks[static_cast<std::size_t>(shape.owner_of(expert))].exported;
    }
    for (std::int32_t e = 0; e < shape.num_experts; ++e) {
      rank.blocks_after += plan.of(e, g);
      for (std::int32_t other = 0; other < shape.num_ranks; ++other) {
        if (shape.owner_of(e) == g) rank.blocks_before += plan.of(e, other);
      }
    }
  }
  return ranks;
}

Report make_report(const MoePlanOptions& options, const CountMatrix& counts) {
  ReplicaPlanner planner(planner_options(options, counts));
  Report report{.options = planner.options(), .skew = skew_of(counts)};
  report.microseconds = time_of_plan(planner, counts);
  const ReplicaPlan& plan = planner.plan(counts.counts);
  report.summary = plan.summary;
  report.ranks = lines_of(plan, counts);
  report.eta = removed_excess(fixed_rows_by_rank(counts), rows_by_rank(plan, counts.counts));
  return report;
}

Json to_json(const Report& report, const MoePlanOptions& options, const std::string& name) {
  Json integers = Json::object(), ranks = Json::array();
  for (const auto& [key, value] : integers_of(report.options)) integers[key] = value;
  for (const RankLine& rank : report.ranks) {
    ranks.push_back({{"rows_before", rank.rows_before},
                     {"rows_after", rank.rows_after()},
                     {"rows_of_replicas", rank.rows_replicas},
                     {"blocks_before", rank.blocks_before},
                     {"blocks_after", rank.blocks_after},
                     {"replicas_held", rank.slots},
                     {"replicas_exported", rank.exported}});
  }
  const PlanSummary& s = report.summary;
  return {{"verb", "moe plan"},
          {"workload", name},
          {"kappa",
           {{"experts", report.skew.experts},
            {"ranks", report.skew.ranks},
            {"effective_experts", report.skew.effective}}},
          {"preset", name_of(options.preset)},
          {"method", name_of(options.method)},
          {"pass", name_of(options.objective)},
          {"integers", integers},
          {"ranks", ranks},
          {"fair_share_blocks", s.fair_share},
          {"max_blocks_before", s.max_blocks_fixed},
          {"max_blocks_after", s.max_blocks},
          {"replicas", s.num_replicas},
          {"eta", report.eta ? Json(*report.eta) : Json(nullptr)},
          {"modelled_time_blocks",
           {{"fixed", in_blocks(s.predicted_fixed)}, {"plan", in_blocks(s.predicted)}}},
          {"planner_us", report.microseconds}};
}

void print_table(const Report& report, const MoePlanOptions& options, const std::string& name,
                 std::ostream& out) {
  const auto line = [&](const char* what, const std::string& value) {
    out << fmt::format("{:<11}{}\n", what, value);
  };
  const PlannerOptions& o = report.options;
  const PlanSummary& s = report.summary;
  line("workload", printable(name));
  line("kappa", fmt::format("experts {:.2f}, ranks {:.2f}, effective experts {:.2f}",
                            report.skew.experts, report.skew.ranks, report.skew.effective));
  std::string gate = "no gate";
  if (o.gate == PlanGate::kPredictedTime) {
    gate = fmt::format("gate with slack {:.1f} %", 100.0 * o.slack / kSlackUnit);
  }
  line("planner",
       fmt::format("{}, {}, {}: {} slots, {} rows a block, lambda {:.2f} blocks, {}",
                   name_of(options.preset), name_of(options.method), name_of(options.objective),
                   o.shape.num_slots, o.shape.block_rows, in_blocks(o.lambda), gate));
  out << fmt::format("\n{:>4} {:>12} {:>10} {:>15} {:>7} {:>9}  {}\n", "rank", "rows before",
                     "after", "blocks before", "after", "exports", "replicas held");
  for (std::size_t r = 0; r < report.ranks.size(); ++r) {
    const RankLine& rank = report.ranks[r];
    std::string slots;
    for (const std::int32_t expert : rank.slots) {
      slots += fmt::format("{}{}", slots.empty() ? "" : " ", expert);
    }
    out << fmt::format("{:>4} {:>12} {:>10} {:>15} {:>7} {:>9}  {}\n", r, rank.rows_before,
                       rank.rows_after(), rank.blocks_before, rank.blocks_after, rank.exported,
                       slots.empty() ? "-" : slots);
  }
  out << "\n";
  line("blocks", fmt::format("largest {} -> {}, fair share {}", s.max_blocks_fixed, s.max_blocks,
                             s.fair_share));
  line("replicas", s.num_replicas == 0 ? "none: fixed placement" : std::to_string(s.num_replicas));
  line("eta", report.eta ? fmt::format("{:.2f} % of the busiest rank's excess rows gone",
                                       100 * *report.eta)
                         : "no excess under fixed placement");
  line("time", fmt::format("fixed {:.1f}, plan {:.1f} block times: x {:.3f} (modelled)",
                           in_blocks(s.predicted_fixed), in_blocks(s.predicted), report.gain()));
  line("planned in", fmt::format("{:.1f} us, median of {} runs on this machine",
                                 report.microseconds, kTimedRuns));
}

void write_picture(const Report& report, const MoePlanOptions& options, const std::string& name) {
  LoadPicture picture{
      .title = "Rows per rank before and after", .workload = name, .plan = "", .ranks = {}};
  picture.plan =
      fmt::format("{}, {}, {}: {} replicas, largest {} -> {} blocks, modelled time x {:.3f}",
                  name_of(options.preset), name_of(options.method), name_of(options.objective),
                  report.summary.num_replicas, report.summary.max_blocks_fixed,
                  report.summary.max_blocks, report.gain());
  for (const RankLine& rank : report.ranks) {
    picture.ranks.push_back({rank.rows_before, rank.rows_own, rank.rows_replicas});
  }
  write_file_atomically(options.svg, to_svg(picture));
}

}  // namespace

int moe_plan(const MoePlanOptions& options, std::ostream& out, std::ostream& err) {
  const MoeLoad load = read_source(options.source, WithRoute::kNo);
  const Report report = make_report(options, load.counts);
  if (options.form == OutputForm::kJson) {
    out << to_text(to_json(report, options, load.name));
  } else {
    print_table(report, options, load.name, out);
  }
  if (!options.svg.empty()) {
    write_picture(report, options, load.name);
    err << fmt::format("picture: {}\n", printable(options.svg));
  }
  return kSuccess;
}

}  // namespace tileweave::cli

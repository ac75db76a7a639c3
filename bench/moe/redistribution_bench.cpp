// eta of every configuration that is not balanced, both presets and both passes, as a table: the
// median of three seeds each, 8 ranks, 128 rows a block, lambda 12, no gate. Nothing is timed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tileweave/moe/planner/row_assignment.h"
#include "tileweave/moe/workload/configurations.h"
#include "tileweave/moe/workload/metrics.h"

namespace tileweave {
namespace {

struct Arm {
  const char* name;
  PlannerOptions (*make)(const PlannerShape&);
  std::vector<double> all = {}, large = {};  // eta; large: from 8192 tokens per rank
};

PlannerOptions without_gate(PlannerOptions options) {
  options.gate = PlanGate::kOff;
  options.lambda = 12 * kTimeUnit;
  return options;
}

std::vector<Arm> arms() {
  using Shape = const PlannerShape&;
  constexpr PlanObjective kForward = PlanObjective::kLoadOnly;
  constexpr PlanObjective kBackward = PlanObjective::kReductionAware;
  return {
      {"paper, forward", [](Shape shape) { return without_gate(paper_preset(shape, kForward)); }},
      {"tuned, forward", [](Shape shape) { return without_gate(tuned_preset(shape, kForward)); }},
      {"paper, backward", [](Shape shape) { return without_gate(paper_preset(shape, kBackward)); }},
      {"tuned, backward",
       [](Shape shape) { return without_gate(tuned_preset(shape, kBackward)); }}};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double eta_of(const Arm& arm, const WorkloadConfiguration& configuration) {
  const PlannerShape shape =
      shape_with_default_slots(configuration.num_ranks, configuration.num_experts);
  ReplicaPlanner planner(arm.make(shape));
  std::vector<double> of_seeds;
  for (const std::uint64_t seed : kWorkloadSeeds) {
    const CountMatrix counts = counts_of(configuration, seed);
    const auto rows = rows_by_rank(planner.plan(counts.counts), counts.counts);
    of_seeds.push_back(removed_excess(fixed_rows_by_rank(counts), rows).value_or(1));
  }
  return median(of_seeds);
}

void print_row(const char* name, const std::vector<double>& values) {
  std::string row = fmt::format("| **{}** |", name);
  for (const double value : values) row += fmt::format(" **{:.2f}** |", 100 * value);
  std::puts(row.c_str());
}

}  // namespace
}  // namespace tileweave

int main() {
  using namespace tileweave;
  std::vector<Arm> all = arms();
  std::string header = "| configuration |", rule = "|---|";
  for (const Arm& arm : all) header += fmt::format(" {} |", arm.name), rule += "---|";
  fmt::print("{}\n{}\n", header, rule);
  for (const WorkloadConfiguration& configuration : evaluation_configurations()) {
    if (configuration.is_balanced()) continue;
    std::string row = "| " + to_string(configuration) + " |";
    for (Arm& arm : all) {
      const double eta = eta_of(arm, configuration);
      arm.all.push_back(eta);
      if (configuration.tokens_per_rank >= 8192) arm.large.push_back(eta);
      row += fmt::format(" {:.2f} |", 100 * eta);
    }
    std::puts(row.c_str());
  }
  std::vector<double> medians, large, least;
  for (const Arm& arm : all) {
    medians.push_back(median(arm.all));
    large.push_back(median(arm.large));
    least.push_back(*std::min_element(arm.large.begin(), arm.large.end()));
  }
  print_row("median of all", medians);
  print_row("median from 8192 tokens", large);
  print_row("least from 8192 tokens", least);
  std::vector<double> paper = {0.996, 0.996, 0.982, 0.982};
  print_row("median that the paper reports, other loads", paper);
  return 0;
}

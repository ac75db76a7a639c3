// Time of a plan and largest load, three planners by turns.
//
// Per configuration: 8 ranks, one core; counts of many seeds, so that no plan is made of counts
// that are still in the cache's and the predictor's memory; median and 99th percentile over all.
// JSON beside the table with --json.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tileweave/moe/planner/row_assignment.h"
#include "tileweave/moe/workload/configurations.h"
#include "tileweave/moe/workload/metrics.h"

namespace tileweave {
namespace {

constexpr std::uint64_t kSeeds = 500;
constexpr int kRepeats = 5;

struct Arm {
  const char* name;
  PlannerOptions options;
  std::vector<double> microseconds = {};
  double load_over_share = 0;  // sum over seeds
  double eta = 0;              // sum over seeds
  double replicas = 0;
};

double percentile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(part * last)];
}

std::vector<Arm> arms_of(std::int32_t num_experts) {
  const PlannerShape shape = shape_with_default_slots(8, num_experts);
  PlannerOptions no_gate = tuned_preset(shape, PlanObjective::kLoadOnly);
  no_gate.gate = PlanGate::kOff;
  PlannerOptions bisection = paper_preset(shape, PlanObjective::kLoadOnly), packing = bisection;
  bisection.method = PlanMethod::kBisection;
  packing.method = PlanMethod::kPacking;
  PlannerOptions one_slot = paper_preset(shape, PlanObjective::kLoadOnly);
  one_slot.shape.num_slots = 1;
  PlannerOptions chains = one_slot;
  chains.chain_moves = ChainMoves::kOn;
  return {{"paper, forward", paper_preset(shape, PlanObjective::kLoadOnly)},
          {"paper, backward", paper_preset(shape, PlanObjective::kReductionAware)},
          {"tuned, forward", tuned_preset(shape, PlanObjective::kLoadOnly)},
          {"tuned, backward", tuned_preset(shape, PlanObjective::kReductionAware)},
          {"tuned, forward, no gate", no_gate},
          {"bisection", bisection},
          {"packing", packing},
          {"paper, forward, 1 slot", one_slot},
          {"the same with chain moves", chains}};
}

void measure(std::vector<Arm>& arms, const WorkloadConfiguration& configuration) {
  std::vector<ReplicaPlanner> planners;
  for (const Arm& arm : arms) planners.emplace_back(arm.options);
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const CountMatrix counts = counts_of(configuration, seed);
    const auto fixed = fixed_rows_by_rank(counts);
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (std::size_t i = 0; i < arms.size(); ++i) {
        const auto start = std::chrono::steady_clock::now();
        const ReplicaPlan& plan = planners[i].plan(counts.counts);
        const std::chrono::duration<double, std::micro> time =
            std::chrono::steady_clock::now() - start;
        arms[i].microseconds.push_back(time.count());
        if (repeat > 0) continue;
        const PlanSummary& s = plan.summary;
        arms[i].load_over_share += static_cast<double>(s.max_blocks) / s.fair_share;
        arms[i].eta += removed_excess(fixed, rows_by_rank(plan, counts.counts)).value_or(1);
        arms[i].replicas += s.num_replicas;
      }
    }
  }
}

}  // namespace
}  // namespace tileweave

int main(int argc, char** argv) {
  using namespace tileweave;
  const bool json = argc == 2 && std::string_view(argv[1]) == "--json";
  const char* separator = "[";
  if (!json) {
    std::fputs(
        "| load, 8 ranks | planner | median us | p99 us | largest load / fair share | eta | "
        "replicas |\n|---|---|---|---|---|---|---|\n",
        stdout);
  }
  for (const std::int32_t experts : {256, 128}) {
    for (const std::int32_t tokens : {1024, 8192}) {
      for (const double exponent : {0.3, 0.9}) {
        const WorkloadConfiguration configuration{.num_experts = experts,
                                                  .tokens_per_rank = tokens,
                                                  .load = {LoadFamily::kZipf, exponent}};
        std::vector<Arm> arms = arms_of(experts);
        measure(arms, configuration);
        for (const Arm& arm : arms) {
          const double median = percentile(arm.microseconds, 0.5);
          const double p99 = percentile(arm.microseconds, 0.99);
          const double load = arm.load_over_share / kSeeds, eta = arm.eta / kSeeds;
          const double replicas = arm.replicas / kSeeds;
          if (json) {
            fmt::print(
                "{}\n{{\"load\": \"{}\", \"planner\": \"{}\", \"median_us\": {:.2f}, "
                "\"p99_us\": {:.2f}, \"load_over_fair_share\": {:.4f}, \"eta\": {:.4f}, "
                "\"replicas\": {:.2f}}}",
                separator, to_string(configuration), arm.name, median, p99, load, eta, replicas);
            separator = ",";
          } else {
            fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.4f} | {:.4f} | {:.1f} |\n",
                       to_string(configuration), arm.name, median, p99, load, eta, replicas);
          }
        }
      }
    }
  }
  if (json) std::puts("\n]");
  return 0;
}

#include "tileweave/plan/verify.h"

#include <algorithm>
#include <set>
#include <string>

#include "tileweave/core/error.h"
#include "tileweave/plan/buffer_check.h"
#include "tileweave/plan/contract_check.h"
#include "tileweave/plan/grounds.h"
#include "tileweave/plan/node_words.h"

namespace tileweave {
namespace {

void check_options(const Plan& plan, const VerifyOptions& options) {
  for (const NodeSpec& node : plan.nodes()) {
    if (options.device_of_rank.empty()) return;
    if (static_cast<std::size_t>(node.rank) >= options.device_of_rank.size()) {
      throw Error("verify plan `" + plan.options().name + "`",
                  "a device for every rank (device_of_rank has " +
                      std::to_string(options.device_of_rank.size()) + " entries)",
                  "rank " + std::to_string(node.rank));
    }
  }
}

void check_residency(const Plan& plan, const DeviceLimits& device, std::vector<Fault>& faults) {
  for (std::size_t n = 0; n < plan.nodes().size(); ++n) {
    const NodeSpec& node = plan.nodes()[n];
    if (!node.integrated || blocks_per_sm(node.resources, device) > 0) continue;
    const auto id = static_cast<NodeId>(n);
    faults.push_back({FaultKind::kBlockFitsNoSm,
                      label_of(id, node).text() + " fits no SM of " + device.name + ": " +
                          why_no_fit(node.resources, device),
                      id});
  }
}

/// A stream that shares its hardware queue with another can be held up by a launch it knows nothing
/// of, so "released" would no longer mean "can be placed".
void check_queues(const Plan& plan, const VerifyOptions& options, std::vector<Fault>& faults) {
  std::set<std::pair<std::int32_t, std::int32_t>> ranks_of_devices;
  for (const NodeSpec& node : plan.nodes()) {
    const std::int32_t device = options.device_of_rank.empty()
                                    ? 0
                                    : options.device_of_rank[static_cast<std::size_t>(node.rank)];
    ranks_of_devices.insert({device, node.rank});
  }
  std::int64_t most = 0;
  for (const auto& [device, rank] : ranks_of_devices) {
    const auto ranks = std::count_if(ranks_of_devices.begin(), ranks_of_devices.end(),
                                     [&, d = device](const auto& pair) { return pair.first == d; });
    most = std::max<std::int64_t>(most, ranks);
  }
  const std::int64_t streams = most * plan.options().num_streams;
  if (streams <= options.device.hardware_queues) return;
  faults.push_back({FaultKind::kStarvation,
                    counted(streams, "stream") + " (" + counted(most, "rank") + " with " +
                        std::to_string(plan.options().num_streams) + " each) share " +
                        counted(options.device.hardware_queues, "hardware queue") + " of " +
                        options.device.name +
                        ": a node can stand in a queue behind one that waits for it"});
}

}  // namespace

Verdict verify(const Plan& plan, const VerifyOptions& options) {
  check_options(plan, options);
  Verdict verdict;
  check_residency(plan, options.device, verdict.faults);
  if (options.starvation == StarvationCheck::kOn) check_queues(plan, options, verdict.faults);
  ContractReport contract = check_contract(plan);
  verdict.faults.insert(verdict.faults.end(), contract.faults.begin(), contract.faults.end());
  // Grounds and order follow from what the tiles say; with a fault in that they say nothing.
  if (!verdict.ok()) return verdict;

  GroundedSchedule grounded(plan, options);
  std::size_t edge = 0;
  std::vector<DataEdge> edges;
  std::vector<Overwrite> overwrites;
  for (NodeId id = 0; id < static_cast<NodeId>(plan.nodes().size()); ++id) {
    edges.clear();
    overwrites.clear();
    while (edge < contract.edges.size() && contract.edges[edge].to == id) {
      edges.push_back(contract.edges[edge++]);
    }
    for (const Overwrite& overwrite : contract.overwrites) {
      if (overwrite.writer == id) overwrites.push_back(overwrite);
    }
    const std::vector<Fault> faults = grounded.add(id, edges, overwrites);
    verdict.faults.insert(verdict.faults.end(), faults.begin(), faults.end());
  }
  const std::vector<Fault> shared = check_shared_buffers(plan, grounded.order());
  verdict.faults.insert(verdict.faults.end(), shared.begin(), shared.end());
  verdict.edges = grounded.edges();
  verdict.schedule = grounded.schedule();
  return verdict;
}

Schedule serial_schedule(const Plan& plan) {
  Schedule schedule{.num_streams = 1, .nodes = {}};
  for (std::size_t n = 0; n < plan.nodes().size(); ++n) {
    ScheduledNode node;
    const auto before = static_cast<NodeId>(n) - 1;
    // On one rank the stream's order says it already.
    if (n > 0 && plan.nodes()[n - 1].rank != plan.nodes()[n].rank) {
      node.after.push_back({before, Release::kCompleted});
    }
    schedule.nodes.push_back(std::move(node));
  }
  return schedule;
}

}  // namespace tileweave

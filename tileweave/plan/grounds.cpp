#include "tileweave/plan/grounds.h"

#include <algorithm>

#include "tileweave/core/error.h"
#include "tileweave/plan/node_words.h"

namespace tileweave {

GroundedSchedule::GroundedSchedule(const Plan& plan, const VerifyOptions& options)
    : plan_(&plan), options_(options), order_(plan), search_(plan, order_, options) {
  if (plan.options().num_streams < 1 || plan.options().num_streams > kMaxStreams) {
    throw Error("plan `" + plan.options().name + "`",
                "1 to " + std::to_string(kMaxStreams) + " streams",
                std::to_string(plan.options().num_streams));
  }
  if (options.device.num_sms < 1) {
    throw Error("device `" + options.device.name + "`", "at least one SM",
                std::to_string(options.device.num_sms));
  }
  schedule_.num_streams = plan.options().num_streams;
}

std::string GroundedSchedule::name(NodeId id) const {
  return label_of(id, spec(id)).text();
}

NodeId GroundedSchedule::pred_of(NodeId id) const {
  for (NodeId k = id - 1; k >= 0; --k) {
    if (spec(k).rank == spec(id).rank) return k;
  }
  return -1;
}

void GroundedSchedule::depend(NodeId id, NodeId on, Release release) {
  std::vector<Dependency>& after = schedule_.nodes.back().after;
  if (release == Release::kCompleted) {
    std::erase_if(after, [&](const Dependency& weaker) {
      return weaker.on == on && weaker.release != Release::kProgrammatic;
    });
  }
  after.push_back({on, release});
  order_.relate(id, schedule_.nodes.back());
}

std::vector<Fault> GroundedSchedule::add(NodeId id, const std::vector<DataEdge>& edges,
                                         const std::vector<Overwrite>& overwrites) {
  std::vector<Fault> faults;
  now_ = {};
  now_.policy = plan_->edge_of(id);
  place(id);
  release(id);
  add_data_dependencies(id, edges, overwrites);
  search_.schedule(id, schedule_.nodes.back());
  if (options_.starvation == StarvationCheck::kOn && !ground_wait_kernel(id, faults)) {
    // Without its wait kernel the node must be ordered after its data by other means.
    add_data_dependencies(id, edges, overwrites);
    search_.schedule(id, schedule_.nodes.back());
  }

  for (const DataEdge& edge : edges) now_.was_complete.push_back(order_.complete(edge.from, id));
  if (options_.starvation == StarvationCheck::kOn) ground(id, faults);
  for (std::size_t e = 0; e < edges.size(); ++e) {
    edges_.push_back(report_edge(edges[e], now_.was_complete[e]));
  }
  for (const Line& line : now_.downgrades) {
    const bool reported = std::any_of(edges.begin(), edges.end(), [&](const DataEdge& edge) {
      return edge.from == line.towards;
    });
    if (reported) continue;
    edges_.push_back({.from = line.towards,
                      .to = id,
                      .tensor = kNoTensor,
                      .requested = now_.policy.kind,
                      .kind = EdgeKind::kFull,
                      .start = now_.start,
                      .ground = Ground::kNotNeeded,
                      .why = line.text});
  }
  return faults;
}

void GroundedSchedule::place(NodeId id) {
  std::int32_t index = 0;
  for (NodeId k = 0; k < id; ++k) {
    if (spec(k).rank == spec(id).rank) ++index;
  }
  const NodeId pred = pred_of(id);
  now_.programmatic = now_.policy.kind == EdgeKind::kProgrammatic && pred >= 0 &&
                      spec(pred).integrated && spec(id).integrated;
  ScheduledNode node;
  node.stream = now_.programmatic ? schedule_.nodes[static_cast<std::size_t>(pred)].stream
                                  : index % schedule_.num_streams;
  schedule_.nodes.push_back(node);
  if (now_.programmatic) {
    depend(id, pred, Release::kProgrammatic);
  } else {
    order_.relate(id, schedule_.nodes.back());
  }
}

void GroundedSchedule::release(NodeId id) {
  const bool full = now_.policy.kind == EdgeKind::kFull ||
                    (now_.policy.kind == EdgeKind::kProgrammatic && !now_.programmatic);
  // A node that knows nothing of tiles ended everything before it and holds up all that follows.
  for (NodeId k = id - 1; k >= 0; --k) {
    if ((full || !spec(k).integrated) && !order_.complete(k, id)) {
      depend(id, k, Release::kCompleted);
    }
  }
  const NodeId pred = pred_of(id);
  if (now_.policy.kind != EdgeKind::kTile || pred < 0) return;
  now_.start = now_.policy.start;
  if (order_.begun(pred, id)) return;
  switch (now_.policy.start) {
    case StartRule::kNone:
      break;
    case StartRule::kWaitAll:
      depend(id, pred, Release::kAllBegun);
      break;
    case StartRule::kLaunchCompletion:
      depend(id, pred, Release::kLaunchCompleted);
      break;
    case StartRule::kWaitFirst:
      depend(id, pred, Release::kFirstBegun);
      break;
  }
}

void GroundedSchedule::add_data_dependencies(NodeId id, const std::vector<DataEdge>& edges,
                                             const std::vector<Overwrite>& overwrites) {
  const NodeId pred = pred_of(id);
  const auto orders_itself = [&](NodeId from) {
    // Behind the grid dependency lies everything that is done when the predecessor is.
    return order_.done(from, id) ||
           (now_.programmatic && (from == pred || order_.covered(from, pred)));
  };
  const auto complete_first = [&](NodeId from) {
    depend(id, from, Release::kCompleted);
    now_.by_data.push_back(from);
  };
  for (const DataEdge& edge : edges) {
    if (edge.via == Via::kCompletion && !orders_itself(edge.from)) complete_first(edge.from);
  }
  for (const Overwrite& overwrite : overwrites) {
    if (order_.ordered(overwrite.reader, id)) continue;
    depend(id, overwrite.reader, Release::kCompleted);
    now_.downgrades.push_back({overwrite.reader, "overwrites what " + name(overwrite.reader) +
                                                     " reads of " +
                                                     quoted(plan_->tensors()[overwrite.tensor])});
  }
}

bool GroundedSchedule::ground_wait_kernel(NodeId id, std::vector<Fault>& faults) {
  if (!search_.has_wait_kernel(id)) return true;
  for (NodeId i = 0; i < id; ++i) {
    const auto finding = search_.search(i, id, StarvationSearch::What::kWaitKernel);
    if (!finding.starves) continue;
    if (now_.policy.if_ungrounded == IfUngrounded::kRefuse) {
      faults.push_back({FaultKind::kStarvation,
                        name(id) + " with start rule " + name_of(now_.start) + " can starve " +
                            name(i) + ": " + finding.sentence,
                        id});
      return true;
    }
    now_.start_lost = std::string("no start rule ") + name_of(now_.start) + ": " + finding.sentence;
    now_.start = StartRule::kNone;
    std::erase_if(schedule_.nodes.back().after, [](const Dependency& dependency) {
      return dependency.release == Release::kAllBegun || dependency.release == Release::kFirstBegun;
    });
    order_.relate(id, schedule_.nodes.back());
    return false;
  }
  return true;
}

void GroundedSchedule::ground(NodeId id, std::vector<Fault>& faults) {
  for (NodeId i = 0; i < id; ++i) {
    const auto finding = search_.search(i, id, StarvationSearch::What::kNode);
    if (!finding.starves) {
      if (finding.blocked >= 0) now_.proofs.push_back({i, finding.sentence});
      continue;
    }
    if (now_.policy.if_ungrounded == IfUngrounded::kRefuse) {
      faults.push_back({FaultKind::kStarvation,
                        name(id) + " can starve " + name(i) + ": " + finding.sentence, id});
      continue;
    }
    depend(id, i, Release::kCompleted);
    search_.schedule(id, schedule_.nodes.back());
    now_.downgrades.push_back({i, finding.sentence});
  }
}

EdgeReport GroundedSchedule::report_edge(const DataEdge& edge, bool was_complete) const {
  EdgeReport report{.from = edge.from,
                    .to = edge.to,
                    .tensor = edge.tensor,
                    .requested = now_.policy.kind,
                    .kind = now_.policy.kind,
                    .start = now_.start,
                    .ground = Ground::kNotNeeded,
                    .why = {}};
  const auto downgrade = std::find_if(now_.downgrades.begin(), now_.downgrades.end(),
                                      [&](const Line& line) { return line.towards == edge.from; });
  const bool by_data =
      std::find(now_.by_data.begin(), now_.by_data.end(), edge.from) != now_.by_data.end();
  const NodeId pred = pred_of(edge.to);
  if (now_.policy.kind == EdgeKind::kFull) {
    report.why = spec(edge.to).integrated ? "as asked" : "not integrated: full on both sides";
  } else if (downgrade != now_.downgrades.end()) {
    report.kind = EdgeKind::kFull;
    report.why = downgrade->text;
  } else if (by_data && edge.via == Via::kCompletion) {
    report.kind = EdgeKind::kFull;
    report.why = "no waits cover what it reads of " + quoted(plan_->tensors()[edge.tensor]);
  } else if (!spec(edge.from).integrated) {
    report.kind = EdgeKind::kFull;
    report.why = name(edge.from) + " is not integrated: full on both sides";
  } else if (now_.policy.kind == EdgeKind::kProgrammatic && !now_.programmatic) {
    report.kind = EdgeKind::kFull;
    report.why = pred < 0 ? "no node before it on its rank to follow programmatically"
                          : name(pred) + " is not integrated";
  } else if (order_.complete(edge.from, edge.to)) {
    report.why = "complete before it begins";
    if (!was_complete && !now_.downgrades.empty()) {
      report.kind = EdgeKind::kFull;
      report.why += ", as " + name(now_.downgrades.back().towards) +
                    " must be: " + now_.downgrades.back().text;
    }
  } else if (now_.programmatic && edge.from == pred) {
    report.why = "every block waits for the grid dependency";
  } else if (now_.programmatic && order_.covered(edge.from, pred)) {
    report.why = "done when " + name(pred) + " is complete";
  } else {
    report = report_tile_edge(std::move(report));
  }
  if (!now_.start_lost.empty()) {
    report.why += (report.why.empty() ? "" : "; ") + now_.start_lost;
  }
  return report;
}

EdgeReport GroundedSchedule::report_tile_edge(EdgeReport report) const {
  report.kind = EdgeKind::kTile;
  const std::string all_blocks =
      "all " + counted(blocks_of(spec(report.from)), "block") + " of " + name(report.from);
  const auto proof = std::find_if(now_.proofs.begin(), now_.proofs.end(),
                                  [&](const Line& line) { return line.towards == report.from; });
  if (order_.done(report.from, report.to)) {
    report.why = "done before it begins";
  } else if (order_.begun(report.from, report.to)) {
    report.ground = Ground::kCounted;
    report.why = all_blocks + " are counted as begun first";
  } else if (options_.launch_order == LaunchOrder::kTrusted &&
             order_.trusted_begun(report.from, report.to)) {
    report.ground = Ground::kOrdered;
    report.why = all_blocks + " begin first, as launch order is trusted";
  } else if (proof != now_.proofs.end()) {
    report.ground = Ground::kCapacity;
    report.why = proof->text;
  } else {
    report.ground = Ground::kNone;
    report.why =
        options_.starvation == StarvationCheck::kOff ? "starvation check is off" : "refused";
  }
  return report;
}

}  // namespace tileweave

// GroundedSchedule: gives every node its stream and its dependencies, so that no waiting block can
// starve the block it waits for, whatever order the device admits blocks in.
//
// Nodes are added in plan order; each is scheduled as its EdgePolicy asks and then held against all
// earlier nodes that may be unfinished beside it. Where neither `capacity` nor `counted` nor
// `ordered` holds towards one of them, the node waits for that one's completion (a downgrade, with
// a line in the report), or is refused. docs/grounds_and_proofs.md has the proof. verify() runs it
// over a plan, an eager stream node by node. The plan must outlive it and may grow meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tileweave/plan/contract_check.h"
#include "tileweave/plan/happens_before.h"
#include "tileweave/plan/starvation.h"
#include "tileweave/plan/verify.h"

namespace tileweave {

class GroundedSchedule {
 public:
  /// Throws Error for options that say nothing (no SM, fewer than one stream).
  GroundedSchedule(const Plan& plan, const VerifyOptions& options);
  GroundedSchedule(const GroundedSchedule&) = delete;
  GroundedSchedule& operator=(const GroundedSchedule&) = delete;

  /// Schedules the next node. `edges` and `overwrites` are those that end in it. Returns faults
  /// (starvation where the policy refuses downgrades); the node counts as scheduled all the same.
  std::vector<Fault> add(NodeId id, const std::vector<DataEdge>& edges,
                         const std::vector<Overwrite>& overwrites = {});

  const Schedule& schedule() const { return schedule_; }
  const std::vector<EdgeReport>& edges() const { return edges_; }
  const HappensBefore& order() const { return order_; }

 private:
  struct Line {
    NodeId towards = -1;
    std::string text;
  };
  /// What is known of the node being added, for its report.
  struct Current {
    EdgePolicy policy;
    bool programmatic = false;  // launched with a grid dependency on the node before it
    StartRule start = StartRule::kNone;
    std::string start_lost;          // why the start rule was dropped
    std::vector<bool> was_complete;  // per edge: before grounds were looked for
    std::vector<NodeId> by_data;     // completions that semaphores cannot replace
    std::vector<Line> downgrades;
    std::vector<Line> proofs;  // capacity
  };

  const NodeSpec& spec(NodeId id) const { return plan_->nodes()[static_cast<std::size_t>(id)]; }
  std::string name(NodeId id) const;
  NodeId pred_of(NodeId id) const;
  void depend(NodeId id, NodeId on, Release release);

  void place(NodeId id);
  void release(NodeId id);
  void add_data_dependencies(NodeId id, const std::vector<DataEdge>& edges,
                             const std::vector<Overwrite>& overwrites);
  /// False: the start rule was dropped, and with it what its wait kernel ordered.
  bool ground_wait_kernel(NodeId id, std::vector<Fault>& faults);
  void ground(NodeId id, std::vector<Fault>& faults);
  EdgeReport report_edge(const DataEdge& edge, bool was_complete) const;
  EdgeReport report_tile_edge(EdgeReport report) const;

  const Plan* plan_;
  VerifyOptions options_;
  Schedule schedule_;
  HappensBefore order_;
  StarvationSearch search_;
  std::vector<EdgeReport> edges_;
  Current now_;
};

}  // namespace tileweave

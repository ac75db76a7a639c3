// HappensBefore: which node's accesses are ordered before which other's, for any admission order.
//
// Relations over nodes i < j, closed transitively (docs/grounds_and_proofs.md has the rules):
//   complete(i, j)  i has completed before any block of j begins (stream order, full dependencies)
//   done(i, j)      every access and signal of i happens before any block of j begins
//   begun(i, j)     every block of i has begun before any block of j begins
//   covered(i, j)   when all works of j have passed their waits, all works of i have signalled
//   ordered(i, j)   every access of i happens before every access of j that follows j's waits
// Launch completion is none of these: best effort gives `trusted_begun` alone. Used by the proof
// of grounds (begun), by buffer reuse and the memory planner (ordered). The plan must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tileweave/plan/plan.h"
#include "tileweave/plan/verdict.h"
#include "tileweave/plan/work_graph.h"

namespace tileweave {

/// A set of nodes as bits.
class NodeSet {
 public:
  bool has(NodeId id) const {
    const auto word = static_cast<std::size_t>(id) / 64;
    return word < words_.size() && ((words_[word] >> (static_cast<unsigned>(id) % 64U)) & 1U) != 0;
  }
  void insert(NodeId id);
  void insert_all(const NodeSet& other);

 private:
  std::vector<std::uint64_t> words_;
};

class HappensBefore {
 public:
  /// Nothing yet: add nodes with `relate`.
  explicit HappensBefore(const Plan& plan);
  HappensBefore(const Plan& plan, const Schedule& schedule);

  /// Relates node `id` to the nodes before it, all of which were related before. May be called
  /// again for the last node, with other dependencies.
  void relate(NodeId id, const ScheduledNode& node);

  bool complete(NodeId i, NodeId j) const { return at(j).complete.has(i); }
  bool done(NodeId i, NodeId j) const { return at(j).done.has(i); }
  bool begun(NodeId i, NodeId j) const { return at(j).begun.has(i); }
  /// begun, if launch completion and first-block wait kernels are trusted.
  bool trusted_begun(NodeId i, NodeId j) const { return at(j).trusted_begun.has(i); }
  bool covered(NodeId i, NodeId j) const { return at(j).covered.has(i); }
  bool ordered(NodeId i, NodeId j) const { return at(j).ordered.has(i); }

  const WorkGraph& works() const { return works_; }

 private:
  /// Sets of earlier nodes that stand in a relation to one node.
  struct Before {
    NodeSet complete;
    NodeSet done;
    NodeSet begun;
    NodeSet trusted_begun;
    NodeSet covered;
    NodeSet ordered;
    NodeSet complete_after;  // complete when this node is (itself among them)
    std::int32_t rank = 0;
    std::int32_t stream = 0;
  };
  const Before& at(NodeId id) const { return before_[static_cast<std::size_t>(id)]; }
  void after_completion(NodeId k, Before& row) const;
  void after_begin(NodeId k, Before& row) const;
  void before_begin(NodeId k, Before& row) const;

  const Plan* plan_;
  WorkGraph works_;
  std::vector<Before> before_;
};

}  // namespace tileweave

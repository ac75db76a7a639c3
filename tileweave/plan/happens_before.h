// HappensBefore: which node's accesses are ordered before which other's, for any admission order.
//
// Three relations over nodes i < j, closed transitively:
//   begun(i, j)     every block of i has begun before any block of j begins
//   complete(i, j)  i has completed before any block of j begins (stream order, full dependencies)
//   ordered(i, j)   every access of i happens before every access of j that follows j's waits:
//                   complete, or every work of j waits for tiles on which all works of i arrived
// Launch completion is never a happens-before (best effort), nor is `begun`. Used by the residency
// proof (begun), by buffer reuse and the memory planner (ordered).
#pragma once

#include <cstdint>
#include <vector>

#include "tileweave/plan/plan.h"
#include "tileweave/plan/verdict.h"

namespace tileweave {

class HappensBefore {
 public:
  HappensBefore(const Plan& plan, const Schedule& schedule);

  bool begun(NodeId i, NodeId j) const { return at(begun_, i, j); }
  bool complete(NodeId i, NodeId j) const { return at(complete_, i, j); }
  bool ordered(NodeId i, NodeId j) const { return at(ordered_, i, j); }

 private:
  bool at(const std::vector<bool>& relation, NodeId i, NodeId j) const {
    return relation[static_cast<std::size_t>(i) * num_nodes_ + static_cast<std::size_t>(j)];
  }
  std::size_t num_nodes_ = 0;
  std::vector<bool> begun_;
  std::vector<bool> complete_;
  std::vector<bool> ordered_;
};

}  // namespace tileweave

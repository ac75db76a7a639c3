// Plan: tensors and nodes in position order; what verify() proves and a device runs.
//
//   Plan plan;
//   const TensorId y = plan.tensor({.name = "Y", .shape = {m, n}, .tiles = {64, n}});
//   plan.add(gemm(plan.tensors(), {.tile_m = 64}, x, w, y));
//
// Every node has a position; it may wait only for nodes of smaller position, on any rank. Adding
// throws for malformed nodes (unknown tensor, clashing sync slots); what tiles say is left to
// verify() (plan/verify.h). Host only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/plan/node.h"
#include "tileweave/plan/tensor.h"

namespace tileweave {

using NodeId = std::int32_t;

/// Streams of a plan, whatever the device: more cannot help, a wrong number must not take the
/// machine.
inline constexpr std::int32_t kMaxStreams = 256;

struct PlanOptions {
  std::string name = "plan";
  std::int32_t num_streams =
      2;  // internal streams, 1 to kMaxStreams; a node is in flight with at most that many - 1
  EdgePolicy edge = {};  // default of nodes that do not say
};

class Plan {
 public:
  explicit Plan(PlanOptions options = {}) : options_(std::move(options)) {}

  TensorId tensor(const TensorSpec& spec) { return tensors_.add(spec); }
  /// (Re-)tiles a tensor; throws Error when a node names it already, since that node's tiles were
  /// made for the old ones.
  void tile(TensorId id, const Coord& tiles);
  /// Returns the node's id: its index in order of (position, rank). Nodes must be added in that
  /// order. Throws Error naming the node.
  NodeId add(NodeSpec node);

  const PlanOptions& options() const { return options_; }
  PlanOptions& options() { return options_; }
  TensorTable& tensors() { return tensors_; }
  const TensorTable& tensors() const { return tensors_; }
  const std::vector<NodeSpec>& nodes() const { return nodes_; }
  std::vector<NodeSpec>& nodes() { return nodes_; }
  EdgePolicy edge_of(NodeId id) const;

 private:
  PlanOptions options_;
  TensorTable tensors_;
  std::vector<NodeSpec> nodes_;
};

/// Checks one node against the tensors it names; throws Error. Plan and AsyncStream both call it.
void check_node(const NodeSpec& node, const TensorTable& tensors);

}  // namespace tileweave

// WorkGraph: which works wait for which works, through the data tiles between them.
//
// Enumerated from the maps of all operands that take part in synchronisation (tiled tensor, sync
// slot), node by node in plan order; it holds whatever the schedule, because a wait ends only when
// all arrivals on its tile are there (verify() checks that arrivals equal targets). What a kernel
// promises: a work passes all its waits before its first signal and touches no tensor of the plan
// after its last one; in between, a signal speaks only for the kernel tile it is for. So a work has
// been waited for when all of its signals have. Works are deduplicated by what they wait for. The
// plan must outlive it.
#pragma once

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

#include "tileweave/plan/plan.h"

namespace tileweave {

struct TileRef {
  TensorId tensor = kNoTensor;
  std::int64_t tile = -1;
  auto operator<=>(const TileRef&) const = default;
};

struct WorkRef {
  NodeId node = -1;
  std::int64_t work = -1;
  auto operator<=>(const WorkRef&) const = default;
};

/// A work signals that it has written a kernel tile of an operand (by index in its NodeSpec).
struct Signal {
  std::int64_t work = -1;
  std::int32_t operand = -1;
  std::int64_t kernel_tile = -1;
};

/// One arrival on a data tile: which work, through which of its node's signals (by index).
struct Arrival : WorkRef {
  std::size_t signal = 0;
};

/// True when the operand waits (a read) or signals (a write) on the semaphores of its tensor.
bool synchronises(const OperandSpec& operand, const Tensor& tensor);

class WorkGraph {
 public:
  /// How the works of a node wait for the works of one producer.
  struct Producer {
    NodeId node = -1;
    bool every_work_waited_for = false;  // each of its works by our works together
    bool every_work_waits = false;       // each of our works for a signal of at least one of its
    bool all_for_all = false;            // each of our works for each of its
  };

  explicit WorkGraph(const Plan& plan) : plan_(&plan) {}

  /// Adds the next node of the plan.
  void add(NodeId id);

  const std::vector<Producer>& producers(NodeId id) const { return at(id).producers; }
  /// Pairs (producer, tensor) with a wait between them.
  const std::vector<std::pair<NodeId, TensorId>>& waited_tensors(NodeId id) const {
    return at(id).waited_tensors;
  }
  const std::vector<TileRef>& waits(const WorkRef& work) const {
    const Node& node = at(work.node);
    return node.wait_sets[node.set_of_work[static_cast<std::size_t>(work.work)]];
  }
  /// Signals of all works of a node.
  const std::vector<Signal>& signals(NodeId id) const { return at(id).signals; }
  /// Works that arrive on a tile, in node order.
  const std::vector<Arrival>& arrivals(const TileRef& tile) const {
    return arrivals_[static_cast<std::size_t>(tile.tensor)][static_cast<std::size_t>(tile.tile)];
  }

 private:
  struct Node {
    std::vector<std::vector<TileRef>> wait_sets;
    std::vector<std::size_t> set_of_work;
    std::vector<Producer> producers;
    std::vector<std::pair<NodeId, TensorId>> waited_tensors;
    std::vector<Signal> signals;
    bool every_work_signals = false;
  };
  const Node& at(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  void collect_waits(const NodeSpec& spec, Node& node) const;
  void relate_producers(Node& node) const;
  void collect_arrivals(NodeId id);

  const Plan* plan_;
  std::vector<Node> nodes_;
  std::vector<std::vector<std::vector<Arrival>>> arrivals_;  // [tensor][tile]
};

}  // namespace tileweave

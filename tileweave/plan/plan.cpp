#include "tileweave/plan/plan.h"

#include <algorithm>
#include <utility>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

std::string operation(const NodeSpec& node) {
  return "node `" + node.name + "`";
}

void check_operand(const NodeSpec& node, std::size_t index, const TensorTable& tensors) {
  const OperandSpec& operand = node.operands[index];
  const std::string which = operation(node) + " operand " + std::to_string(index);
  if (operand.tensor < 0 || operand.tensor >= tensors.size()) {
    throw Error(which, "a tensor id below " + std::to_string(tensors.size()),
                std::to_string(operand.tensor));
  }
  if (operand.access == Access::kWrite && operand.when == ReadTime::kPrologue) {
    throw Error(which, "only reads happen in the prologue", "a write");
  }
  if (operand.access == Access::kRead && operand.reduction != Reduction::kNone) {
    throw Error(which, "only writes are reduced", "a read");
  }
  if (operand.access == Access::kWrite && operand.target) {
    throw Error(which, "only reads have a target to wait for", "a write");
  }
  if (operand.sync_slot < -1) {
    throw Error(which, "a sync slot, or -1 for none", std::to_string(operand.sync_slot));
  }
  if (operand.sync_slot >= 0 && !node.integrated) {
    throw Error(which, "no sync slot in a node that is not integrated",
                std::to_string(operand.sync_slot));
  }
}

void check_sync_slots(const NodeSpec& node) {
  std::vector<std::int32_t> slots;
  for (const OperandSpec& operand : node.operands) {
    if (operand.sync_slot >= 0) slots.push_back(operand.sync_slot);
  }
  std::sort(slots.begin(), slots.end());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (i > 0 && slots[i] == slots[i - 1]) {
      throw Error(operation(node), "one operand per sync slot",
                  "two on slot " + std::to_string(slots[i]));
    }
    if (slots[i] != static_cast<std::int32_t>(i)) {
      throw Error(operation(node),
                  "sync slots 0 to " + std::to_string(slots.size() - 1) + " without a gap",
                  "slot " + std::to_string(slots[i]));
    }
  }
}

}  // namespace

void check_node(const NodeSpec& node, const TensorTable& tensors) {
  require(!node.name.empty(), "node", "a name that is not empty");
  // A call of an unintegrated operator has no kernel of the library, hence no arguments for one.
  if (node.kernel.empty() && node.integrated) {
    throw Error(operation(node), "the name of a kernel");
  }
  if (!node.kernel.empty() && !node.make_args) {
    throw Error(operation(node),
                "a function that makes the arguments of kernel `" + node.kernel + "` (make_args)");
  }
  if (node.rank < 0) throw Error(operation(node), "rank 0 or more", std::to_string(node.rank));
  if (node.position < -1) {
    throw Error(operation(node), "position 0 or more, or -1 for the next one",
                std::to_string(node.position));
  }
  if (node.num_works < 1) {
    throw Error(operation(node), "at least one work", std::to_string(node.num_works));
  }
  if (node.resources.threads < 1 || node.resources.registers_per_thread < 0 ||
      node.resources.shared_bytes < 0) {
    throw Error(operation(node), "at least one thread and no negative resources",
                std::to_string(node.resources.threads) + " threads, " +
                    std::to_string(node.resources.registers_per_thread) + " registers, " +
                    std::to_string(node.resources.shared_bytes) + " bytes of shared memory");
  }
  for (std::size_t i = 0; i < node.operands.size(); ++i) check_operand(node, i, tensors);
  check_sync_slots(node);
}

void Plan::tile(TensorId id, const Coord& tiles) {
  for (const NodeSpec& node : nodes_) {
    for (const OperandSpec& operand : node.operands) {
      if (operand.tensor != id) continue;
      throw Error("tile `" + tensors_[id].spec.name + "`", "a tensor that no node uses yet",
                  "one of `" + node.name + "`");
    }
  }
  tensors_.tile(id, tiles);
}

NodeId Plan::add(NodeSpec node) {
  check_node(node, tensors_);
  if (node.position < 0) {
    node.position = 0;
    for (const NodeSpec& other : nodes_) {
      if (other.rank == node.rank) node.position = other.position + 1;
    }
  }
  if (!nodes_.empty()) {
    const NodeSpec& last = nodes_.back();
    if (std::pair(node.position, node.rank) <= std::pair(last.position, last.rank)) {
      throw Error(
          operation(node),
          "nodes in order of position and rank, after `" + last.name + "` at position " +
              std::to_string(last.position) + " of rank " + std::to_string(last.rank),
          "position " + std::to_string(node.position) + " of rank " + std::to_string(node.rank));
    }
  }
  nodes_.push_back(std::move(node));
  return static_cast<NodeId>(nodes_.size()) - 1;
}

EdgePolicy Plan::edge_of(NodeId id) const {
  const NodeSpec& node = nodes_.at(static_cast<std::size_t>(id));
  EdgePolicy policy = node.edge.value_or(options_.edge);
  if (!node.integrated) policy.kind = EdgeKind::kFull;
  return policy;
}

}  // namespace tileweave

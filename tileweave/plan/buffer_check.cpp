#include "tileweave/plan/buffer_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "tileweave/core/format.h"
#include "tileweave/plan/node_words.h"

namespace tileweave {
namespace {

/// One operand of one node.
struct Use {
  NodeId node = -1;
  const OperandSpec* operand = nullptr;
};

/// Works per kernel tile of an operand.
std::vector<std::vector<std::int64_t>> works_of_tiles(const NodeSpec& node,
                                                      const OperandSpec& operand,
                                                      const Tensor& tensor, const TileSet& tiles) {
  std::vector<std::vector<std::int64_t>> works(static_cast<std::size_t>(tiles.count()));
  for (std::int64_t w = 0; w < node.num_works; ++w) {
    for (const std::int64_t k : kernel_tiles_of_work(operand, tensor, w)) {
      works[static_cast<std::size_t>(k)].push_back(w);
    }
  }
  return works;
}

/// Works of one earlier node that surely come before a given work, through the tiles it waits for.
class WorksBefore {
 public:
  WorksBefore(const HappensBefore& order, NodeId of) : order_(order), of_(of) {
    for (const Signal& signal : order.works().signals(of)) ++num_signals_[signal.work];
  }

  /// Everything that `work` does.
  bool has(const WorkRef& later, std::int64_t work) {
    const Reached& reached = reached_by(later);
    const auto found = reached.num_signals.find(work);
    return reached.all ||
           (found != reached.num_signals.end() && found->second == num_signals_.at(work));
  }
  /// What `work` writes into a kernel tile of the operand with index `operand`.
  bool has_written(const WorkRef& later, std::int64_t work, std::int32_t operand,
                   std::int64_t kernel_tile) {
    return reached_by(later).written.count({work, operand, kernel_tile}) > 0 || has(later, work);
  }

 private:
  struct Reached {
    bool all = false;
    std::map<std::int64_t, std::size_t> num_signals;  // by work
    std::set<std::tuple<std::int64_t, std::int32_t, std::int64_t>> written;
  };

  const Reached& reached_by(const WorkRef& later) {
    const auto [found, is_new] = known_.try_emplace(later);
    if (is_new) found->second = search(later);
    return found->second;
  }

  Reached search(const WorkRef& later) const {
    Reached reached;
    std::set<std::size_t> signals;
    std::set<WorkRef> seen = {later};
    std::vector<WorkRef> open = {later};
    while (!open.empty()) {
      const WorkRef at = open.back();
      open.pop_back();
      if (order_.ordered(of_, at.node)) return {.all = true, .num_signals = {}, .written = {}};
      for (const TileRef& tile : order_.works().waits(at)) {
        for (const Arrival& arrival : order_.works().arrivals(tile)) {
          if (arrival.node < of_ || arrival.node >= at.node) continue;
          if (arrival.node == of_) {
            signals.insert(arrival.signal);
          } else if (seen.insert(arrival).second) {
            open.push_back(arrival);
          }
        }
      }
    }
    for (const std::size_t s : signals) {
      const Signal& signal = order_.works().signals(of_)[s];
      ++reached.num_signals[signal.work];
      reached.written.insert({signal.work, signal.operand, signal.kernel_tile});
    }
    return reached;
  }

  const HappensBefore& order_;
  NodeId of_;
  std::map<std::int64_t, std::size_t> num_signals_;  // by work
  std::map<WorkRef, Reached> known_;
};

class SharedBufferCheck {
 public:
  SharedBufferCheck(const Plan& plan, const HappensBefore& order) : plan_(plan), order_(order) {}

  std::vector<Fault> run() {
    std::map<TensorId, std::vector<TensorId>> buffers;
    for (TensorId t = 0; t < plan_.tensors().size(); ++t) {
      buffers[plan_.tensors().buffer_owner(t)].push_back(t);
    }
    for (const auto& [owner, tensors] : buffers) {
      for (std::size_t later = 1; later < tensors.size(); ++later) {
        for (std::size_t earlier = 0; earlier < later; ++earlier) {
          check_pair(tensors[earlier], tensors[later]);
        }
      }
    }
    return std::move(faults_);
  }

 private:
  const NodeSpec& spec(NodeId id) const { return plan_.nodes()[static_cast<std::size_t>(id)]; }

  std::vector<Use> uses_of(TensorId tensor) const {
    std::vector<Use> uses;
    for (std::size_t n = 0; n < plan_.nodes().size(); ++n) {
      for (const OperandSpec& operand : plan_.nodes()[n].operands) {
        if (operand.tensor == tensor) uses.push_back({static_cast<NodeId>(n), &operand});
      }
    }
    return uses;
  }

  void check_pair(TensorId earlier, TensorId later) {
    const std::vector<Use> uses = uses_of(earlier);
    for (const Use& write : uses_of(later)) {
      if (write.operand->access != Access::kWrite) continue;
      for (const Use& use : uses) check_uses(use, write);
    }
  }

  /// `use` touches the earlier tensor, `write` writes the later one over it.
  void check_uses(const Use& use, const Use& write) {
    if (use.node < write.node && order_.ordered(use.node, write.node)) return;
    const Tensor& earlier = plan_.tensors()[use.operand->tensor];
    const Tensor& later = plan_.tensors()[write.operand->tensor];
    const TileSet used_tiles = kernel_tiles_of(*use.operand, earlier);
    const TileSet written_tiles = kernel_tiles_of(*write.operand, later);
    const auto users = works_of_tiles(spec(use.node), *use.operand, earlier, used_tiles);
    const auto writers = works_of_tiles(spec(write.node), *write.operand, later, written_tiles);
    WorksBefore before(order_, use.node);

    for (std::size_t k = 0; k < writers.size(); ++k) {
      if (writers[k].empty()) continue;
      const Box box = written_tiles.box(static_cast<std::int64_t>(k));
      std::optional<Fault> fault;
      used_tiles.for_each_meeting(box, [&](std::int64_t used) {
        for (const std::int64_t writer : writers[k]) {
          for (const std::int64_t user : users[static_cast<std::size_t>(used)]) {
            if (fault) return;
            const bool ordered = use.node == write.node ? user == writer
                                                        : use.node < write.node &&
                                                              comes_before(before, use, user, used,
                                                                           {write.node, writer});
            if (!ordered) {
              fault = fault_of(use, user, write, writer, intersect(box, used_tiles.box(used)));
            }
          }
        }
      });
      if (fault) {
        faults_.push_back(*fault);
        return;
      }
    }
  }

  /// Whether what `user` does with kernel tile `used` of its operand comes before `writer`.
  bool comes_before(WorksBefore& before, const Use& use, std::int64_t user, std::int64_t used,
                    const WorkRef& writer) const {
    if (use.operand->access == Access::kRead) return before.has(writer, user);
    const auto index = static_cast<std::int32_t>(use.operand - spec(use.node).operands.data());
    return before.has_written(writer, user, index, used);
  }

  Fault fault_of(const Use& use, std::int64_t user, const Use& write, std::int64_t writer,
                 const Box& box) const {
    const Tensor& earlier = plan_.tensors()[use.operand->tensor];
    const Tensor& later = plan_.tensors()[write.operand->tensor];
    const NodeLabel using_node = label_of(use.node, spec(use.node));
    const NodeLabel writing_node = label_of(write.node, spec(write.node));
    std::string sentence = "work " + std::to_string(writer) + " of " + writing_node.at() +
                           " writes " + to_string(box) + " of " + quoted(later) +
                           " into the buffer of " + quoted(earlier) + ", which work " +
                           std::to_string(user) + " of ";
    const char* verb = use.operand->access == Access::kRead ? " reads" : " writes";
    if (use.node == write.node) {
      sentence += std::string("the same node") + verb + " there in any order";
    } else if (use.node > write.node) {
      sentence += using_node.at() + verb + " there later";
    } else {
      sentence += using_node.at() + verb + " there without being ordered before it";
    }
    return {FaultKind::kBufferReusedEarly, sentence, write.node, write.operand->tensor, -1};
  }

  const Plan& plan_;
  const HappensBefore& order_;
  std::vector<Fault> faults_;
};

}  // namespace

std::vector<Fault> check_shared_buffers(const Plan& plan, const HappensBefore& order) {
  return SharedBufferCheck(plan, order).run();
}

}  // namespace tileweave

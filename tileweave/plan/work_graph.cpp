#include "tileweave/plan/work_graph.h"

#include <algorithm>
#include <map>

namespace tileweave {
namespace {

/// Data tiles of an operand's works; each kernel tile is mapped once.
class SyncTiles {
 public:
  SyncTiles(const OperandSpec& operand, const Tensor& tensor, const LaunchArgs& args)
      : operand_(operand),
        tensor_(tensor),
        args_(args),
        kernel_tiles_(kernel_tiles_of(operand, tensor)),
        map_(map_of(operand, tensor, args)) {}

  std::vector<std::int64_t> kernel_tiles(std::int64_t work) const {
    return kernel_tiles_of_work(operand_, tensor_, work);
  }
  template <class Visit>
  void for_each(std::int64_t work, const Visit& visit) {
    for (const std::int64_t k : kernel_tiles(work)) {
      auto [found, is_new] = tiles_.try_emplace(k);
      if (is_new) found->second = map_.tiles_of(kernel_tiles_.coord(k), args_);
      for (const std::int64_t tile : found->second) {
        // A wrong map names tiles that do not exist: a fault of the contract, not of this graph.
        if (tile >= 0 && tile < tensor_.tiles.count()) visit(k, tile);
      }
    }
  }

 private:
  const OperandSpec& operand_;
  const Tensor& tensor_;
  LaunchArgs args_;
  TileSet kernel_tiles_;
  TileMap map_;
  std::map<std::int64_t, std::vector<std::int64_t>> tiles_;
};

}  // namespace

bool synchronises(const OperandSpec& operand, const Tensor& tensor) {
  return operand.sync_slot >= 0 && tensor.tiled() && operand.when == ReadTime::kAfterWait;
}

void WorkGraph::add(NodeId id) {
  const NodeSpec& spec = plan_->nodes()[static_cast<std::size_t>(id)];
  arrivals_.resize(static_cast<std::size_t>(plan_->tensors().size()));
  Node node;
  collect_waits(spec, node);
  relate_producers(node);
  nodes_.push_back(std::move(node));
  collect_arrivals(id);
}

void WorkGraph::collect_waits(const NodeSpec& spec, Node& node) const {
  std::vector<std::pair<TensorId, SyncTiles>> reads;
  for (const OperandSpec& operand : spec.operands) {
    const Tensor& tensor = plan_->tensors()[operand.tensor];
    if (operand.access != Access::kRead || !synchronises(operand, tensor)) continue;
    reads.emplace_back(operand.tensor, SyncTiles(operand, tensor, spec.args));
  }
  // Works that touch the same kernel tiles wait for the same data tiles; others may, too.
  std::map<std::vector<std::int64_t>, std::size_t> by_kernel_tiles;
  std::map<std::vector<TileRef>, std::size_t> by_data_tiles;
  for (std::int64_t work = 0; work < spec.num_works; ++work) {
    std::vector<std::int64_t> touched;
    for (const auto& [tensor, operand] : reads) {
      const std::vector<std::int64_t> of_operand = operand.kernel_tiles(work);
      touched.push_back(static_cast<std::int64_t>(of_operand.size()));
      touched.insert(touched.end(), of_operand.begin(), of_operand.end());
    }
    const auto [set, is_new_work] = by_kernel_tiles.try_emplace(std::move(touched), 0);
    if (is_new_work) {
      std::vector<TileRef> tiles;
      for (auto& [tensor, operand] : reads) {
        operand.for_each(work, [&, t = tensor](std::int64_t /*kernel_tile*/, std::int64_t tile) {
          tiles.push_back({t, tile});
        });
      }
      std::sort(tiles.begin(), tiles.end());
      tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
      const auto [found, is_new] = by_data_tiles.try_emplace(tiles, node.wait_sets.size());
      if (is_new) node.wait_sets.push_back(std::move(tiles));
      set->second = found->second;
    }
    node.set_of_work.push_back(set->second);
  }
}

void WorkGraph::relate_producers(Node& node) const {
  struct Seen {
    std::vector<std::size_t> stamp;    // per signal: last wait set that covers it, from 1
    std::size_t num_seen = 0;          // signals covered by any set
    std::size_t num_in_set = 0;        // signals covered by the current set
    std::size_t set = 0;               // current set
    std::size_t num_sets_waiting = 0;  // sets that cover at least one signal
    std::size_t num_sets_full = 0;     // sets that cover all signals
  };
  std::map<NodeId, Seen> producers;
  for (std::size_t s = 0; s < node.wait_sets.size(); ++s) {
    for (const TileRef& tile : node.wait_sets[s]) {
      const auto& of_tensor = arrivals_[static_cast<std::size_t>(tile.tensor)];
      if (of_tensor.empty()) continue;
      for (const Arrival& arrival : of_tensor[static_cast<std::size_t>(tile.tile)]) {
        Seen& seen = producers[arrival.node];
        if (seen.stamp.empty()) seen.stamp.resize(signals(arrival.node).size(), 0);
        if (seen.set != s + 1) {
          seen.set = s + 1;
          seen.num_in_set = 0;
          ++seen.num_sets_waiting;
          node.waited_tensors.emplace_back(arrival.node, tile.tensor);
        } else if (node.waited_tensors.back() != std::pair(arrival.node, tile.tensor)) {
          node.waited_tensors.emplace_back(arrival.node, tile.tensor);
        }
        std::size_t& stamp = seen.stamp[arrival.signal];
        if (stamp == s + 1) continue;
        if (stamp == 0) ++seen.num_seen;
        stamp = s + 1;
        if (++seen.num_in_set == seen.stamp.size()) ++seen.num_sets_full;
      }
    }
  }
  for (const auto& [id, seen] : producers) {
    const bool all_signal = at(id).every_work_signals;
    node.producers.push_back(
        {.node = id,
         .every_work_waited_for = all_signal && seen.num_seen == seen.stamp.size(),
         .every_work_waits = seen.num_sets_waiting == node.wait_sets.size(),
         .all_for_all = all_signal && seen.num_sets_full == node.wait_sets.size()});
  }
  std::sort(node.waited_tensors.begin(), node.waited_tensors.end());
  node.waited_tensors.erase(std::unique(node.waited_tensors.begin(), node.waited_tensors.end()),
                            node.waited_tensors.end());
}

void WorkGraph::collect_arrivals(NodeId id) {
  const NodeSpec& spec = plan_->nodes()[static_cast<std::size_t>(id)];
  Node& node = nodes_[static_cast<std::size_t>(id)];
  std::vector<bool> has_signalled(static_cast<std::size_t>(spec.num_works), false);
  for (std::size_t o = 0; o < spec.operands.size(); ++o) {
    const OperandSpec& operand = spec.operands[o];
    const Tensor& tensor = plan_->tensors()[operand.tensor];
    if (operand.access != Access::kWrite || !synchronises(operand, tensor)) continue;
    auto& of_tensor = arrivals_[static_cast<std::size_t>(operand.tensor)];
    of_tensor.resize(static_cast<std::size_t>(tensor.tiles.count()));
    SyncTiles tiles(operand, tensor, spec.args);
    for (std::int64_t work = 0; work < spec.num_works; ++work) {
      std::int64_t last = -1;
      tiles.for_each(work, [&](std::int64_t kernel_tile, std::int64_t tile) {
        if (kernel_tile != last) {
          node.signals.push_back({work, static_cast<std::int32_t>(o), kernel_tile});
          has_signalled[static_cast<std::size_t>(work)] = true;
        }
        last = kernel_tile;
        of_tensor[static_cast<std::size_t>(tile)].push_back({{id, work}, node.signals.size() - 1});
      });
    }
  }
  node.every_work_signals =
      std::find(has_signalled.begin(), has_signalled.end(), false) == has_signalled.end();
}

}  // namespace tileweave

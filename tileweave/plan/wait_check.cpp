#include "tileweave/plan/wait_check.h"

#include <algorithm>
#include <map>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

/// "node 0 `Y = XW`", or "2 by node 0 `A`, 1 by node 1 `B`" for several.
std::string producers_of(const TensorUse& use, std::int64_t tile) {
  std::map<NodeId, std::int64_t> arrivals;
  std::map<NodeId, std::string> names;
  for (const UsedOperand* write : use.writes) {
    for (std::int64_t i = 0; i < write->tiles.num_touched(); ++i) {
      const auto tiles = write->tiles.data_tiles(i);
      const auto [begin, end] = std::equal_range(tiles.begin(), tiles.end(), tile);
      if (begin == end) continue;
      arrivals[write->node->id] += end - begin;
      names[write->node->id] = write->node->text();
    }
  }
  std::string text;
  for (const auto& [node, count] : arrivals) {
    if (!text.empty()) text += ", ";
    if (arrivals.size() > 1) text += std::to_string(count) + " by ";
    text += names[node];
  }
  return text;
}

class WaitCheck {
 public:
  WaitCheck(RunUse& run, const UsedOperand& read, std::vector<Fault>& faults)
      : tensor_(run.tensor_of(read)),
        use_(run.use_of(read)),
        read_(read),
        faults_(faults),
        visit_(++run.visit) {}

  OpenWaits run() {
    OpenWaits open{&read_, {}};
    for (std::int64_t i = 0; i < read_.tiles.num_touched(); ++i) {
      for (const std::int64_t t : read_.tiles.data_tiles(i)) {
        TileUse& tile = use_.tiles[static_cast<std::size_t>(t)];
        if (tile.visit == visit_) continue;
        tile.visit = visit_;
        tile.waited = true;
        if (!check(t, tile, open)) return open;
      }
    }
    report_backward();
    report_too_many();
    return open;
  }

 private:
  void fault(FaultKind kind, const std::string& sentence, std::int64_t tile) {
    faults_.push_back({kind, sentence, read_.node->id, read_.tensor(), tile});
  }

  /// False when the target itself cannot be read.
  bool check(std::int64_t t, const TileUse& tile, OpenWaits& open) {
    if (tile.last_signaller != nullptr && tile.last_signaller->position >= read_.node->position) {
      backward_.push_back(t);
      return true;
    }
    std::int64_t target = tile.arrivals;
    if (const auto& raw = read_.tiles.spec().target) {
      try {
        target = raw->of(tensor_.tiles, t, read_.args);
      } catch (const Error& error) {
        fault(FaultKind::kTilingsDisagree,
              read_.node->text() + " has no target for " + tile_text(tensor_, t) + ": " +
                  error.what(),
              t);
        return false;
      }
    }
    if (target > kMaxIndex) {
      fault(FaultKind::kIndexOverflow,
            read_.node->text() + " waits for " + std::to_string(target) + " arrivals on " +
                tile_text(tensor_, t) + ", more than 2^31 - 1",
            t);
      return false;
    }
    if (target < tile.arrivals || target < 0) {
      too_many_.push_back({t, target});
    } else if (target > tile.arrivals || (tile.arrivals == 0 && expects_arrivals(t))) {
      open.tiles.push_back({t, target});
    }
    return true;
  }

  /// Whether a tile on which nobody arrives is a wait in vain. It is not where its elements come
  /// from nodes that do not signal, nor where a run leaves a state tensor as it is.
  bool expects_arrivals(std::int64_t t) {
    if (tensor_.spec.kind == TensorKind::kState) return false;
    const Box box = tensor_.tiles.box(t);
    for (const UsedOperand* write : use_.writes) {
      if (write->node->position >= read_.node->position) continue;
      write->tiles.places_meeting(box, places_);
      if (!places_.empty()) return false;
    }
    return true;
  }

  void report_backward() {
    if (backward_.empty()) return;
    const std::int64_t t = *std::min_element(backward_.begin(), backward_.end());
    const NodeLabel* producer = use_.tiles[static_cast<std::size_t>(t)].last_signaller;
    fault(FaultKind::kBackwardWait,
          read_.node->at() + " waits on " + tile_text(tensor_, t) + " for " +
              (producer == read_.node ? "itself" : producer->at()) +
              and_more(static_cast<std::int64_t>(backward_.size()) - 1, "tile"),
          t);
  }

  void report_too_many() {
    if (too_many_.empty()) return;
    const auto& [t, target] = *std::min_element(
        too_many_.begin(), too_many_.end(),
        [](const OpenWaits::Tile& a, const OpenWaits::Tile& b) { return a.tile < b.tile; });
    const std::int64_t arrivals = use_.tiles[static_cast<std::size_t>(t)].arrivals;
    const std::string producers = producers_of(use_, t);
    fault(FaultKind::kTooManyArrivals,
          read_.node->text() + " waits for " + counted(target, "arrival") + " on " +
              tile_text(tensor_, t) + ", but its producers make " + std::to_string(arrivals) +
              (producers.empty() ? "" : " (" + producers + ")") +
              and_more(static_cast<std::int64_t>(too_many_.size()) - 1, "tile"),
          t);
  }

  const Tensor& tensor_;
  TensorUse& use_;
  const UsedOperand& read_;
  std::vector<Fault>& faults_;
  std::int32_t visit_;
  std::vector<std::int64_t> backward_;
  std::vector<OpenWaits::Tile> too_many_;
  std::vector<std::int64_t> places_;
};

}  // namespace

OpenWaits check_waits(RunUse& run, const UsedOperand& read, std::vector<Fault>& faults) {
  if (!read.tiles.synchronises()) return {&read, {}};
  return WaitCheck(run, read, faults).run();
}

void close_waits(RunUse& run, const OpenWaits& open, std::vector<Fault>& faults) {
  if (open.tiles.empty()) return;
  const UsedOperand& read = *open.read;
  const Tensor& tensor = run.tensor_of(read);
  const TensorUse& use = run.use_of(read);
  std::vector<OpenWaits::Tile> unsignalled;
  std::vector<OpenWaits::Tile> too_few;
  for (const OpenWaits::Tile& wait : open.tiles) {
    const TileUse& tile = use.tiles[static_cast<std::size_t>(wait.tile)];
    if (tile.last_signaller == nullptr) {
      unsignalled.push_back(wait);
    } else if (tile.last_signaller->position < read.node->position) {
      too_few.push_back(wait);
    }
  }
  const auto by_tile = [](const OpenWaits::Tile& a, const OpenWaits::Tile& b) {
    return a.tile < b.tile;
  };
  if (!unsignalled.empty()) {
    const auto& [t, target] = *std::min_element(unsignalled.begin(), unsignalled.end(), by_tile);
    faults.push_back({FaultKind::kUnsatisfiedWait,
                      read.node->text() + " waits " +
                          (target > 0 ? "for " + counted(target, "arrival") + " " : "") + "on " +
                          tile_text(tensor, t) + ", on which no node arrives" +
                          and_more(static_cast<std::int64_t>(unsignalled.size()) - 1, "tile"),
                      read.node->id, read.tensor(), t});
  }
  if (!too_few.empty()) {
    const auto& [t, target] = *std::min_element(too_few.begin(), too_few.end(), by_tile);
    faults.push_back({FaultKind::kTooFewArrivals,
                      read.node->text() + " waits for " + counted(target, "arrival") + " on " +
                          tile_text(tensor, t) + ", but its producers make " +
                          std::to_string(use.tiles[static_cast<std::size_t>(t)].arrivals) + " (" +
                          producers_of(use, t) + ")" +
                          and_more(static_cast<std::int64_t>(too_few.size()) - 1, "tile"),
                      read.node->id, read.tensor(), t});
  }
}

}  // namespace tileweave

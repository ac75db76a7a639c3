#include "tileweave/runtime/hang.h"

#include <algorithm>
#include <cstdio>

#include "tileweave/core/format.h"

namespace tileweave {
namespace {

// A sentence lists at most this many missing arrivals or stuck waits, then counts the rest.
constexpr std::size_t kMaxListed = 4;

std::string quoted(const std::string& name) {
  return "`" + name + "`";
}

std::string node_name(NodeId id, const HangContext& context) {
  const auto found = context.nodes.find(id);
  return "node " + std::to_string(id) +
         (found == context.nodes.end() ? "" : " " + quoted(found->second->name));
}

std::string listed(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size() && i < kMaxListed; ++i) {
    text += (i > 0 ? ", " : "") + items[i];
  }
  if (items.size() > kMaxListed) {
    text += " and " + std::to_string(items.size() - kMaxListed) + " more";
  }
  return text;
}

std::string seconds(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", static_cast<double>(ns) * 1e-9);
  return text;
}

const OperandSpec* operand_of_slot(const NodeSpec& spec, std::uint32_t slot) {
  for (const OperandSpec& operand : spec.operands) {
    if (operand.sync_slot == static_cast<std::int32_t>(slot)) return &operand;
  }
  return nullptr;
}

std::string begun_text(NodeId id, const NodeSpec& spec, const HangContext& context) {
  const NodeSync& sync = context.node_syncs.at(id);
  const std::uint32_t begun =
      context.state.read_word(sync.begun.words) - context.state.read_word(sync.begun.base);
  return "(" + std::to_string(begun) + " of " + std::to_string(blocks_of(spec)) + " blocks began)";
}

/// Kernel tiles that should have arrived on `tile` of `tensor` in the run that hung, but did not.
std::vector<std::string> missing_arrivals(TensorId id, std::int64_t tile,
                                          const HangContext& context) {
  std::vector<std::string> missing;
  const Tensor& tensor = context.tensors[id];
  for (const auto& [node_id, spec] : context.nodes) {
    for (std::size_t i = 0; i < spec->operands.size(); ++i) {
      const OperandSpec& operand = spec->operands[i];
      if (operand.tensor != id || operand.access != Access::kWrite || operand.sync_slot < 0) {
        continue;
      }
      const auto syncs = context.node_syncs.find(node_id);
      if (syncs == context.node_syncs.end()) continue;
      const auto stamps = syncs->second.stamps.find(static_cast<std::int32_t>(i));
      if (stamps == syncs->second.stamps.end()) continue;
      // A stamp counts arrivals of all runs; in the run that hung it should be one ahead.
      const std::uint32_t wanted = context.state.read_word(syncs->second.completed) + 1;
      const TileSet kernel = kernel_tiles_of(operand, tensor);
      const TileMap map = map_of(operand, tensor, spec->args);
      for (std::int64_t k = 0; k < kernel.count(); ++k) {
        const std::vector<std::int64_t> tiles = map.tiles_of(kernel.coord(k), spec->args);
        if (std::find(tiles.begin(), tiles.end(), tile) == tiles.end()) continue;
        if (context.state.read_word(stamps->second + k) == wanted) continue;
        missing.push_back("kernel tile " + to_string(kernel.coord(k)) + " of " +
                          node_name(node_id, context) + " " + begun_text(node_id, *spec, context));
      }
    }
  }
  return missing;
}

/// "tile (0, 1) of `Y`: 3 of 4 arrivals", and fills tensor and missing.
std::string wait_text(const WaitSite& site, std::uint32_t seen, NodeId node, Hang& hang,
                      const HangContext& context) {
  if (site.kind == WaitKind::kMbarrier) {
    return "stage " + std::to_string(site.tile) + " of its shared-memory ring";
  }
  if (site.kind == WaitKind::kBegun) {
    return "blocks of " + node_name(static_cast<NodeId>(site.tile), context) +
           " to begin: " + std::to_string(seen - site.base) + " of " + std::to_string(site.target) +
           " began";
  }
  const auto found = context.nodes.find(node);
  const OperandSpec* operand =
      found == context.nodes.end() ? nullptr : operand_of_slot(*found->second, site.operand);
  if (operand == nullptr) return "tile " + std::to_string(site.tile);
  const Tensor& tensor = context.tensors[operand->tensor];
  hang.tensor = tensor.spec.name;
  hang.missing = missing_arrivals(operand->tensor, site.tile, context);
  return "tile " + to_string(tensor.tiles.coord(site.tile)) + " of " + quoted(hang.tensor) + ": " +
         std::to_string(seen - site.base) + " of " + std::to_string(site.target) + " arrivals";
}

std::string missing_text(const Hang& hang) {
  if (hang.tensor.empty()) return "";
  if (hang.missing.empty()) {
    return "; every kernel tile that was declared has arrived, so the target is too high";
  }
  return "; missing: " + listed(hang.missing);
}

}  // namespace

Hang explain(const HangReport& report, const HangContext& context) {
  Hang hang;
  hang.report = report;
  const auto id = static_cast<NodeId>(report.node);
  if (const auto found = context.nodes.find(id); found != context.nodes.end()) {
    hang.node = found->second->name;
  }
  const WaitSite site{static_cast<WaitKind>(report.kind),
                      report.operand,
                      report.tile,
                      report.base,
                      report.target,
                      false};
  const std::string what = wait_text(site, report.seen, id, hang, context);
  hang.sentence = node_name(id, context) + " block " + std::to_string(report.block) + " on SM " +
                  std::to_string(report.sm) + " waited " + seconds(report.waited_ns) + " for " +
                  what + missing_text(hang);
  return hang;
}

Hang explain(const Deadlock& deadlock, const HangContext& context) {
  Hang hang;
  std::vector<std::string> waits;
  std::vector<std::string> names;
  for (const StuckWait& wait : deadlock.waits) {
    Hang one;
    // One after the other: wait_text() fills in what missing_text() tells.
    const std::string what = wait_text(wait.site, wait.seen, wait.node, one, context);
    const std::string text = node_name(wait.node, context) + " block " +
                             std::to_string(wait.block) + " waits for " + what + missing_text(one);
    if (names.empty()) {
      hang = one;
      hang.node = wait.name;
      hang.report.node = static_cast<std::uint32_t>(wait.node);
      hang.report.kind = static_cast<std::uint32_t>(wait.site.kind);
      hang.report.operand = wait.site.operand;
      hang.report.tile = wait.site.tile;
      hang.report.base = wait.site.base;
      hang.report.target = wait.site.target;
      hang.report.seen = wait.seen;
      hang.report.block = static_cast<std::uint32_t>(wait.block);
      hang.report.state = HangReport::kComplete;
    }
    // One line per node is enough to see who waits for whom.
    if (std::find(names.begin(), names.end(), wait.name) != names.end()) continue;
    names.push_back(wait.name);
    waits.push_back(text);
  }
  hang.sentence = "deadlock, nothing can make progress: " + listed(waits);
  if (!deadlock.not_admitted.empty()) {
    std::vector<std::string> blocked;
    for (const std::string& name : deadlock.not_admitted) blocked.push_back(quoted(name));
    hang.sentence += (waits.empty() ? "" : "; ") + std::string("no SM has room for blocks of ") +
                     listed(blocked);
  }
  return hang;
}

}  // namespace tileweave

#include "tileweave/runtime/loader.h"

#include <algorithm>
#include <iterator>

#include "tileweave/core/error.h"
#include "tileweave/plan/contract_check.h"
#include "tileweave/plan/grounds.h"

namespace tileweave {
namespace {

bool depends_on(const ScheduledNode& node, NodeId on, Release release) {
  return std::any_of(node.after.begin(), node.after.end(),
                     [&](const Dependency& d) { return d.on == on && d.release == release; });
}

/// What `act` throws, with `prefix` in front of its operation.
template <class Act>
void name_errors(const std::string& prefix, const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    throw Error(prefix + error.operation(), error.expected(), error.got());
  }
}

/// True when i has completed before any access of j that follows its grid dependency wait.
bool covered(NodeId i, NodeId j, const Schedule& schedule, const HappensBefore& order) {
  while (true) {
    if (order.complete(i, j)) return true;
    const auto& after = schedule.nodes[static_cast<std::size_t>(j)].after;
    const auto grid = std::find_if(after.begin(), after.end(), [](const Dependency& d) {
      return d.release == Release::kProgrammatic;
    });
    if (grid == after.end()) return false;
    if (grid->on == i) return true;
    // Every block of a programmatic consumer waits for the grid before it returns, so what was
    // complete for the predecessor is complete for its successor.
    j = grid->on;
    if (i > j) return false;
  }
}

}  // namespace

void measure_resources(NodeSpec& node, const Device& device) {
  if (!node.integrated) return;
  const KernelImpl& kernel = device.kernels().find(node.kernel);
  require(kernel.num_sync_slots == num_sync_slots(node), "load plan",
          "kernel and node must have the same number of sync slots",
          "`" + kernel.name + "` with " + std::to_string(kernel.num_sync_slots) + ", node `" +
              node.name + "` with " + std::to_string(num_sync_slots(node)));
  require(!kernel.vendor_call, "load plan",
          "a node that is not integrated for what is another library's call",
          "`" + node.name + "` with kernel `" + kernel.name + "`");
  node.resources = device.measured_resources(kernel, node.resources);
  const std::int32_t theirs = device.occupancy(kernel, node.resources);
  const std::int32_t ours = blocks_per_sm(node.resources, device.limits());
  require(theirs < 0 || theirs == ours, "load plan",
          "the plan's residency must equal the device's occupancy",
          "kernel `" + kernel.name + "`: " + std::to_string(ours) + " blocks per SM by plan, " +
              std::to_string(theirs) + " by the device");
}

Schedule unchecked_schedule(const Plan& plan, VerifyOptions how) {
  how.starvation = StarvationCheck::kOff;
  const ContractReport contract = check_contract(plan);
  GroundedSchedule asked(plan, how);
  for (NodeId id = 0; id < static_cast<NodeId>(plan.nodes().size()); ++id) {
    std::vector<DataEdge> edges;
    std::copy_if(contract.edges.begin(), contract.edges.end(), std::back_inserter(edges),
                 [&](const DataEdge& edge) { return edge.to == id; });
    asked.add(id, edges);
  }
  return asked.schedule();
}

void check_tile_support(const NodeSpec& node, const TensorTable& tensors, const Device& device) {
  if (!node.integrated) return;
  const KernelImpl& kernel = device.kernels().find(node.kernel);
  if (kernel.tiles == TileSupport::kAny) return;
  for (const OperandSpec& operand : node.operands) {
    const Tensor& tensor = tensors[operand.tensor];
    const bool plain = operand.sync_slot < 0 || !tensor.tiled() ||
                       (tensor.tiles.count() == 1 && !operand.map &&
                        (!operand.target || operand.target->is_constant()));
    require(plain, "load plan", "one data tile per tensor for a kernel compiled for that",
            "node `" + node.name + "` with `" + tensor.spec.name + "` in " +
                tensor.tiles.describe() + ", kernel `" + kernel.name + "`");
  }
}

std::optional<Tiling> closed_form_producer(TensorId id, const std::vector<NodeSpec>& nodes,
                                           const TensorTable& tensors,
                                           const std::vector<std::int64_t>& arrivals) {
  const Tensor& tensor = tensors[id];
  std::optional<Tiling> producer;
  for (const NodeSpec& node : nodes) {
    for (const OperandSpec& operand : node.operands) {
      if (operand.tensor != id || operand.access != Access::kWrite || operand.sync_slot < 0) {
        continue;
      }
      const TileMap map = map_of(operand, tensor, node.args);
      const TileSet kernel = kernel_tiles_of(operand, tensor);
      if (producer || map.form() != MapForm::kPlain || !tensor.tiles.is_plain() ||
          operand.map.has_value()) {
        return std::nullopt;
      }
      producer = kernel.tiling();
    }
  }
  // Kernel tiles that no work names do not arrive: then the grids promise too much.
  for (std::size_t t = 0; producer && t < arrivals.size(); ++t) {
    const TargetMap target = TargetMap::plain(*producer, tensor.tiles.tiling());
    if (target.of(tensor.tiles, static_cast<std::int64_t>(t)) != arrivals[t]) producer.reset();
  }
  return producer;
}

std::vector<std::vector<bool>> live_operands(const Plan& plan, const Schedule& schedule,
                                             const HappensBefore& order, Mode mode) {
  const std::vector<NodeSpec>& nodes = plan.nodes();
  std::vector<std::vector<bool>> live;
  std::vector<bool> is_read(static_cast<std::size_t>(plan.tensors().size()), false);
  std::vector<bool> is_polled(is_read.size(), false);
  for (std::size_t j = 0; j < nodes.size(); ++j) {
    std::vector<bool>& of_node = live.emplace_back(nodes[j].operands.size(), false);
    for (std::size_t o = 0; o < nodes[j].operands.size(); ++o) {
      const OperandSpec& operand = nodes[j].operands[o];
      if (operand.access != Access::kRead || operand.sync_slot < 0) continue;
      const auto tensor = static_cast<std::size_t>(operand.tensor);
      is_read[tensor] = true;
      for (std::size_t i = 0; i < j && !of_node[o]; ++i) {
        const bool produces = std::any_of(
            nodes[i].operands.begin(), nodes[i].operands.end(), [&](const OperandSpec& p) {
              return p.tensor == operand.tensor && p.access == Access::kWrite && p.sync_slot >= 0;
            });
        of_node[o] =
            produces && (mode == Mode::kSerial ||
                         !covered(static_cast<NodeId>(i), static_cast<NodeId>(j), schedule, order));
      }
      // A target given by hand is waited for as it was given, whatever the producers do.
      if (operand.target.has_value() && mode == Mode::kOverlap && !of_node[o]) {
        of_node[o] = nodes[j].edge.value_or(plan.options().edge).kind == EdgeKind::kTile;
      }
      if (of_node[o]) is_polled[tensor] = true;
    }
  }
  for (std::size_t j = 0; j < nodes.size(); ++j) {
    for (std::size_t o = 0; o < nodes[j].operands.size(); ++o) {
      const OperandSpec& operand = nodes[j].operands[o];
      if (operand.access != Access::kWrite || operand.sync_slot < 0) continue;
      const auto tensor = static_cast<std::size_t>(operand.tensor);
      // A tiled tensor that no node reads was tiled for somebody outside the plan.
      live[j][o] = mode == Mode::kSerial || is_polled[tensor] || !is_read[tensor];
    }
  }
  return live;
}

CompletionEvent completion_event_of(NodeId id, const Schedule& schedule) {
  const bool needed = std::any_of(
      schedule.nodes.begin(), schedule.nodes.end(),
      [&](const ScheduledNode& n) { return depends_on(n, id, Release::kLaunchCompleted); });
  return needed ? CompletionEvent::kLaunchCompletion : CompletionEvent::kNone;
}

EndEvent end_event_of(NodeId id, const Schedule& schedule) {
  const auto& nodes = schedule.nodes;
  const std::int32_t stream = nodes[static_cast<std::size_t>(id)].stream;
  bool followed = false;
  for (std::size_t j = static_cast<std::size_t>(id) + 1; j < nodes.size(); ++j) {
    if (nodes[j].stream == stream) {
      // An event between them would part a pair that is launched programmatically.
      if (!followed && depends_on(nodes[j], id, Release::kProgrammatic)) return EndEvent::kNone;
      followed = true;
    } else if (followed && depends_on(nodes[j], id, Release::kCompleted)) {
      return EndEvent::kRecorded;
    }
  }
  return EndEvent::kNone;
}

Launch launch_of_node(NodeId id, const NodeSpec& spec, const ScheduledNode& scheduled,
                      const SyncState& state) {
  Launch launch;
  launch.node = id;
  launch.name = spec.name;
  launch.num_blocks = blocks_of(spec);
  launch.num_works = spec.num_works;
  launch.resources = spec.resources;
  launch.cost = spec.cost;
  launch.stream = scheduled.stream;
  launch.after = scheduled.after;
  launch.abort = state.abort_word();
  launch.wait_kernel = state.wait_kernel(id, spec);
  return launch;
}

void prepare_vendor_call(Launch& launch, Device& device) {
  if (launch.kernel == nullptr || !launch.kernel->vendor_call) return;
  const VendorCall& vendor = *launch.kernel->vendor_call;
  if (vendor.prepare) {
    name_errors("prepare `" + launch.name + "`: ",
                [&] { vendor.prepare(device, launch.args.data()); });
  }
  if (launch.kernel->cpu != nullptr) return;
  launch.call = [&vendor, name = launch.name, args = launch.args](NativeStream stream) {
    name_errors("launch `" + name + "`: ", [&] { vendor.enqueue(stream, args.data()); });
  };
  launch.kernel = nullptr;
}

std::uint32_t header_flags(NodeId id, const Schedule& schedule, Mode mode) {
  std::uint32_t flags = SyncHeader::kCountBegun;
  if (mode == Mode::kSerial) flags |= SyncHeader::kAssertReady;
  for (const Dependency& d : schedule.nodes[static_cast<std::size_t>(id)].after) {
    if (d.release == Release::kProgrammatic) flags |= SyncHeader::kProgrammaticConsumer;
  }
  for (const ScheduledNode& other : schedule.nodes) {
    if (depends_on(other, id, Release::kProgrammatic)) flags |= SyncHeader::kProgrammaticProducer;
  }
  return flags;
}

}  // namespace tileweave

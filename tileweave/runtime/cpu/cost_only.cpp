#include "tileweave/runtime/cpu/cost_only.h"

#include <cstddef>
#include <cstring>

#include "tileweave/core/error.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave::cpu {

namespace {

/// A context of any number of operands, read through a type with many.
constexpr int kManyOperands = 64;
using AnyContext = SyncContext<kManyOperands>;

AnyContext& any_context(std::vector<std::byte>& bytes) {
  return *reinterpret_cast<AnyContext*>(bytes.data());
}

/// The context of `slots` operands, laid out for kManyOperands.
std::vector<std::byte> widened(const std::vector<std::byte>& context, std::int32_t slots) {
  std::vector<std::byte> wide(sizeof(AnyContext));
  const std::size_t words = sizeof(OperandSync) * static_cast<std::size_t>(slots);
  const std::size_t tiles = sizeof(OperandTiles) * static_cast<std::size_t>(slots);
  std::memcpy(wide.data(), context.data(), words);
  std::memcpy(wide.data() + offsetof(AnyContext, header), context.data() + words,
              sizeof(SyncHeader));
  std::memcpy(wide.data() + offsetof(AnyContext, tiles),
              context.data() + words + sizeof(SyncHeader), tiles);
  return wide;
}

void tabulate_map(LaunchState& state, OperandTiles& op, const TileMap& map,
                  const LaunchArgs& args) {
  const Coord grid = map.kernel_grid();
  Tiling unit_tiles{grid, Coord::filled(grid.num_axes, 1)};
  std::vector<std::int32_t> offsets = {0};
  std::vector<std::int32_t> tiles;
  for (std::int64_t k = 0; k < unit_tiles.count(); ++k) {
    for (const std::int64_t tile : map.tiles_of(unit_tiles.coord(k), args)) {
      tiles.push_back(static_cast<std::int32_t>(tile));
    }
    offsets.push_back(static_cast<std::int32_t>(tiles.size()));
  }
  op.num_axes = grid.num_axes;
  for (int a = 0; a < grid.num_axes; ++a) {
    op.shape[a] = grid[a];
    op.ktile[a] = 1;
  }
  state.map_tables.push_back(std::move(offsets));
  op.map_offsets = state.map_tables.back().data();
  state.map_tables.push_back(std::move(tiles));
  op.map_tiles = state.map_tables.back().data();
}

void tabulate_targets(LaunchState& state, OperandTiles& op, const TargetMap& target,
                      const TileSet& data, const LaunchArgs& args) {
  std::vector<std::uint32_t> targets;
  for (std::int64_t t = 0; t < data.count(); ++t) {
    targets.push_back(static_cast<std::uint32_t>(target.of(data, t, args)));
  }
  state.target_tables.push_back(std::move(targets));
  op.targets = state.target_tables.back().data();
}

bool has_slot(const OperandSpec& spec, const Launch& launch) {
  return spec.sync_slot >= 0 && spec.sync_slot < launch.kernel->num_sync_slots &&
         !launch.context.empty();
}

void replace_functors(LaunchState& state) {
  const Launch& launch = *state.launch;
  const NodeSpec& spec = *launch.spec;
  state.own_context = widened(launch.context, launch.kernel->num_sync_slots);
  AnyContext& context = any_context(state.own_context);
  for (const OperandSpec& operand : spec.operands) {
    if (!has_slot(operand, launch)) continue;
    const Tensor& tensor = (*launch.tensors)[operand.tensor];
    OperandTiles& op = context.tiles[operand.sync_slot];
    if (context.operands[operand.sync_slot].words == nullptr) continue;
    if (operand.target && operand.target->form() == MapForm::kFunctor) {
      tabulate_targets(state, op, *operand.target, tensor.tiles, spec.args);
    }
    if (operand.map && operand.map->form() == MapForm::kFunctor) {
      tabulate_map(state, op, map_of(operand, tensor, spec.args), spec.args);
    }
  }
}

void count_contributions(LaunchState& state) {
  const NodeSpec& spec = *state.launch->spec;
  for (const OperandSpec& operand : spec.operands) {
    std::vector<std::uint32_t> counts;
    if (operand.reduction == Reduction::kLastArriver) {
      const Tensor& tensor = (*state.launch->tensors)[operand.tensor];
      counts.resize(static_cast<std::size_t>(kernel_tiles_of(operand, tensor).count()));
      for (std::int64_t w = 0; w < spec.num_works; ++w) {
        for (const std::int64_t k : kernel_tiles_of_work(operand, tensor, w)) {
          ++counts[static_cast<std::size_t>(k)];
        }
      }
    }
    state.arrivals.emplace_back(counts.size());
    state.contributions.push_back(std::move(counts));
  }
}

/// True for the last of the works that contribute to a split kernel tile.
bool arrives_last(LaunchState& state, std::size_t operand, std::int64_t tile) {
  const auto t = static_cast<std::size_t>(tile);
  return state.arrivals[operand][t].fetch_add(1, std::memory_order_relaxed) + 1 ==
         state.contributions[operand][t];
}

class Player {
 public:
  Player(BlockLane& lane, LaunchState& state)
      : lane_(lane),
        state_(state),
        launch_(*state.launch),
        sync_(*reinterpret_cast<const AnyContext*>(state.own_context.data()), AtomicsCpu(lane)) {}

  void play() {
    if (!sync_.begin_cta()) return;
    const NodeSpec& spec = *launch_.spec;
    for (std::int64_t p = lane_.block_index(); p < spec.num_works; p += launch_.num_blocks) {
      if (!play_work(sync_.remap(p))) return;
    }
  }

 private:
  bool play_work(std::int64_t work) {
    const std::vector<OperandSpec>& operands = launch_.spec->operands;
    for (const OperandSpec& operand : operands) {
      if (operand.access != Access::kRead || !has_slot(operand, launch_)) continue;
      for (const Coord& ktile : tiles(operand, work)) {
        if (!sync_.wait_input(operand.sync_slot, ktile)) return false;
      }
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const OperandSpec& operand = operands[i];
      if (operand.access != Access::kWrite || !has_slot(operand, launch_)) continue;
      const TileSet set = kernel_tiles_of(operand, tensor_of(operand));
      for (const std::int64_t k : kernel_tiles_of_work(operand, tensor_of(operand), work)) {
        if (operand.reduction == Reduction::kLastArriver && !last_arriver(i, k)) continue;
        sync_.signal_output(operand.sync_slot, set.coord(k));
      }
    }
    return true;
  }

  bool last_arriver(std::size_t operand, std::int64_t tile) {
    lane_.block().at_hook(lane_, LaneHook::kArrive, 0);
    sync_.atomics().barrier();
    const bool last = lane_.lane() == 0 && arrives_last(state_, operand, tile);
    return sync_.atomics().barrier_or(last);
  }

  const Tensor& tensor_of(const OperandSpec& operand) const {
    return (*launch_.tensors)[operand.tensor];
  }
  std::vector<Coord> tiles(const OperandSpec& operand, std::int64_t work) const {
    const TileSet set = kernel_tiles_of(operand, tensor_of(operand));
    std::vector<Coord> coords;
    for (const std::int64_t k : kernel_tiles_of_work(operand, tensor_of(operand), work)) {
      coords.push_back(set.coord(k));
    }
    return coords;
  }

  BlockLane& lane_;
  LaunchState& state_;
  const Launch& launch_;
  SyncCta<AtomicsCpu, kManyOperands> sync_;
};

}  // namespace

void prepare_costs(LaunchState& state) {
  const Launch& launch = *state.launch;
  if (launch.spec == nullptr || launch.tensors == nullptr) return;
  state.plays_costs = true;
  if (launch.context.empty()) return;
  require(launch.kernel->num_sync_slots <= kManyOperands, "play the costs of a launch",
          "at most 64 operands with semaphores", std::to_string(launch.kernel->num_sync_slots));
  replace_functors(state);
  count_contributions(state);
}

void play_costs(BlockLane& lane, LaunchState& state) {
  // Without a context there is nothing to wait for; the host charges the works when the block ends.
  if (state.own_context.empty()) return;
  Player(lane, state).play();
}

}  // namespace tileweave::cpu

// NodeSpec: one kernel launch of a plan, described well enough to prove what it does.
//
// A node has `num_works` works (kernel tiles of its grid). Block b of `num_blocks` runs the works
// at positions b, b + num_blocks, ... of `order`; every kernel with one work per block has both
// equal. Each operand says which elements a work touches (`kernel_tiles`, `tiles_of_work`) and,
// where the tensor is tiled, which data tiles it waits on or signals (`map`, derived unless given
// by hand).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tileweave/plan/resources.h"
#include "tileweave/plan/tensor.h"
#include "tileweave/tile/tile_map.h"
#include "tileweave/tile/tile_order.h"
#include "tileweave/tile/tile_set.h"

namespace tileweave {

enum class Access : std::uint8_t { kRead, kWrite };

/// When a read happens: after this operand's wait, or in the prologue before any wait.
enum class ReadTime : std::uint8_t { kAfterWait, kPrologue };

/// How several works may share one output kernel tile.
enum class Reduction : std::uint8_t {
  kNone,        // one work per kernel tile; it signals
  kLastArriver  // all works of the tile contribute in a fixed order, the last arriver signals once
};

struct OperandSpec {
  TensorId tensor = kNoTensor;
  Access access = Access::kRead;
  ReadTime when = ReadTime::kAfterWait;
  Reduction reduction = Reduction::kNone;
  /// Boxes that kernel tiles touch; empty: the whole tensor is one kernel tile.
  TileSet kernel_tiles = {};
  /// Linear kernel tiles that a work touches; null: work w touches kernel tile w, or the only one.
  std::function<std::vector<std::int64_t>(std::int64_t work)> tiles_of_work = nullptr;
  /// Raw interface (paper Listings 1-3): a map and a target made by hand, and the data tiling they
  /// were made for. All derived when not given.
  std::optional<TileMap> map = std::nullopt;
  std::optional<TargetMap> target = std::nullopt;
  TileSet assumed_tiles = {};
  /// Re-tiled view: the map leads to the tiles of this set instead of the tensor's own.
  TileSet view = {};
  /// Which operand slot of the kernel's SyncContext this is; -1: none (the kernel neither waits nor
  /// signals on it, and edges through it are full or programmatic).
  std::int32_t sync_slot = -1;
};

/// What the cost model charges, in ticks of the virtual clock (1 tick = 1 ns on a described GPU).
struct Cost {
  double prologue = 0;                                    // before the first wait, per work
  double per_work = 1;                                    // after the wait, per work
  std::function<double(std::int64_t)> of_work = nullptr;  // instead of per_work, where they differ
};

/// Counters that blocks of the node share (last arrivers of split tiles, queue of a claimed order);
/// `arrivals[i]` is how much counter i grows per run.
struct CounterSpec {
  std::vector<std::uint32_t> arrivals;
};

enum class EdgeKind : std::uint8_t { kFull, kProgrammatic, kTile };
enum class StartRule : std::uint8_t { kNone, kWaitAll, kLaunchCompletion, kWaitFirst };

constexpr const char* name_of(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kFull:
      return "full";
    case EdgeKind::kProgrammatic:
      return "programmatic";
    case EdgeKind::kTile:
      return "tile";
  }
  return "?";
}
constexpr const char* name_of(StartRule rule) {
  switch (rule) {
    case StartRule::kNone:
      return "none";
    case StartRule::kWaitAll:
      return "wait_all";
    case StartRule::kLaunchCompletion:
      return "launch_completion";
    case StartRule::kWaitFirst:
      return "wait_first";
  }
  return "?";
}

/// What verify() does with an overlapped edge that has no ground: a full dependency instead, with a
/// line in the report, or a fault.
enum class IfUngrounded : std::uint8_t { kDowngrade, kRefuse };

/// How a node is released relative to the node before it on its rank.
///  full:         starts when every earlier node has completed.
///  programmatic: PDL after its predecessor, same stream; every block waits for the grid
///                dependency before it touches produced data.
///  tile:         starts as `start` says and synchronises on data tiles.
struct EdgePolicy {
  EdgeKind kind = EdgeKind::kTile;
  StartRule start = StartRule::kNone;
  IfUngrounded if_ungrounded = IfUngrounded::kDowngrade;
};

/// Device addresses of the node's operands (in operand order) and of its scratch bytes.
struct Addresses {
  std::vector<void*> operands;
  void* scratch = nullptr;
};

struct NodeSpec {
  std::string name;
  std::string kernel;  // key into the device's KernelLibrary
  std::int32_t rank = 0;
  std::int32_t position = -1;  // -1: after the last node of its rank
  std::int64_t num_works = 1;
  std::int64_t num_blocks = 0;  // 0: one block per work
  TileOrder order = TileOrder::identity();
  std::vector<OperandSpec> operands;
  KernelResources resources;
  Cost cost;
  CounterSpec counter = {};
  std::size_t scratch_bytes = 0;
  std::optional<EdgePolicy> edge = std::nullopt;  // default: the plan's
  LaunchArgs args = {};
  /// The kernel's argument struct as bytes; called once, when addresses are known.
  std::function<std::vector<std::byte>(const Addresses&)> make_args = nullptr;
  /// Operator that knows nothing of tiles (another library's kernel, a memcpy): full dependencies
  /// on both sides, no context is passed.
  bool integrated = true;
};

/// Works share the order's positions: block b runs positions b, b + num_blocks, ...
std::int64_t blocks_of(const NodeSpec& node);
/// Linear kernel tiles of `operand` that `work` touches.
std::vector<std::int64_t> kernel_tiles_of_work(const OperandSpec& operand, const Tensor& tensor,
                                               std::int64_t work);
/// The kernel tile set of an operand, with the whole tensor as default.
TileSet kernel_tiles_of(const OperandSpec& operand, const Tensor& tensor);
/// The map from kernel tiles to the tensor's data tiles: given, composed with the view, or derived.
TileMap map_of(const OperandSpec& operand, const Tensor& tensor, const LaunchArgs& args);

template <class T>
std::vector<std::byte> to_bytes(const T& value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  return {first, first + sizeof(T)};
}

}  // namespace tileweave

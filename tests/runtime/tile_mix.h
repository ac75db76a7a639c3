// Tile mix: a test operator whose every output bit depends on every input bit, their order and the
// time of reading.
//
// A work reads all elements of its input kernel tiles, in order, into one 32-bit hash, and writes
// every element of its output kernel tiles from (hash, element). Any number of inputs and outputs
// (together at most kMaxMixOperands, all u32), each with a kernel tiling and a work -> tiles
// relation of its own. Inputs have sync slots 0, 1, ..., outputs those that follow. One kernel
// source for both devices (tile_mix_kernel.h). Variants break the contract on purpose (MixFault).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tileweave/plan/plan.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/program.h"

namespace tileweave {

inline constexpr int kMaxMixOperands = 6;

/// What the work `MixNode::fault_work` does wrong.
enum class MixFault : std::int32_t {
  kNone,
  kSkipSignal,    // leaves out its signals
  kSignalEarly,   // signals before it has written
  kReadEarly,     // reads its first input before waiting for it
  kWriteOutside,  // writes an element beside its first output tile
  kNeverEnds      // waits inside the block for what never comes, until the run is aborted
};

/// One operand of a tile-mix node.
struct MixOperandSpec {
  TensorId tensor = kNoTensor;
  TileSet kernel_tiles = {};  // empty: the whole tensor
  /// Kernel tiles per work; empty: work w touches kernel tile w, or the only one.
  std::vector<std::vector<std::int64_t>> tiles_of_work = {};
  TileSet view = {};
  std::optional<TileMap> map = std::nullopt;
  std::optional<TargetMap> target = std::nullopt;
  TileSet assumed_tiles = {};
  ReadTime when = ReadTime::kAfterWait;
};

/// Whether blocks take positions in turn or claim them from a queue.
enum class MixOrder : std::uint8_t { kInTurn, kClaimed };

struct MixNode {
  std::string name;
  std::vector<MixOperandSpec> inputs = {};
  std::vector<MixOperandSpec> outputs = {};
  std::int32_t rank = 0;
  std::int32_t position = -1;
  std::int64_t num_works = 1;
  std::int64_t num_blocks = 0;  // 0: one per work
  TileOrder order = TileOrder::identity();
  MixOrder taking = MixOrder::kInTurn;
  KernelResources resources = {.threads = 64, .registers_per_thread = 64};
  std::int32_t lanes = 1;  // 1 or 2 lanes per block on the emulated device
  std::uint32_t salt = 0;
  Cost cost = {};
  std::optional<EdgePolicy> edge = std::nullopt;
  /// Launch arguments of MixRowMaps, for the kernel that has those maps compiled in.
  std::optional<LaunchArgs> row_maps = std::nullopt;
  MixFault fault = MixFault::kNone;
  std::int64_t fault_work = 0;
  TensorId fault_switch = kNoTensor;  // constant of one word: the fault happens while it is not 0
  std::uint32_t delay_seed = 0;
  std::uint32_t max_delay_ns = 0;  // busy loop of up to this long before each work's first wait
};

struct MixUpload {
  TensorId tensor;
  std::vector<std::uint32_t> values;
};

/// A plan of tile-mix nodes with the values that its constants and states start with.
struct MixPlan {
  Plan plan;
  std::vector<MixNode> nodes;  // by NodeId
  std::vector<MixUpload> uploads;

  const std::vector<NodeSpec>& specs() const { return plan.nodes(); }
};

/// A tensor of pseudo-random values that the host writes before the first run.
TensorId add_filled(MixPlan& mix, TensorSpec spec, std::uint32_t seed);
/// A value tensor of u32.
TensorId add_value(MixPlan& mix, TensorSpec spec);
NodeId add_mix(MixPlan& mix, MixNode node);
/// Writes constants and initial states, and junk into everything else.
void upload(Program& program, const MixPlan& mix);

void add_tile_mix_cpu(KernelLibrary& kernels);
void add_tile_mix_cuda(KernelLibrary& kernels);  // in executables with CUDA only

/// Evaluates a plan on the host, node by node, from its NodeSpecs alone.
class MixOracle {
 public:
  explicit MixOracle(const MixPlan& mix);
  void run();
  const std::vector<std::uint32_t>& values(TensorId id) const {
    return values_[static_cast<std::size_t>(id)];
  }
  /// What the host writes between runs.
  void write(TensorId id, std::vector<std::uint32_t> values) {
    values_[static_cast<std::size_t>(id)] = std::move(values);
  }

 private:
  /// One kernel tile that a work reads or writes, as positions in its tensor.
  struct Touch {
    TensorId tensor;
    Access access;
    std::uint32_t salt;  // of a write: which output and which of its tiles
    std::vector<std::size_t> elements;
  };
  struct Work {
    std::uint32_t salt;
    std::vector<Touch> touches;
  };
  std::vector<Work> works_;  // of all nodes, in order
  std::vector<std::vector<std::uint32_t>> values_;
};

}  // namespace tileweave

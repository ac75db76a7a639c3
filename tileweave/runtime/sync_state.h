// SyncState: the device memory behind the semaphores of a run, and the contexts kernels get.
//
// Holds, per tiled tensor, its words, bases and (where targets differ) target table; per node its
// begun counter, shared counters, arrival stamps, order and map tables; and the abort word with its
// host-visible report. Counts only grow; `reset` (after an abort, everything idle) is the only way
// back to zero. Used by Program (everything known at once) and AsyncStream (node by node).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tileweave/plan/plan.h"
#include "tileweave/runtime/base_update.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/launch.h"
#include "tileweave/runtime/run_options.h"
#include "tileweave/runtime/sync_memory.h"
#include "tileweave/sync/context.h"

namespace tileweave {

/// Observed state of one data tile's semaphore, as a user would inspect it.
struct SemaphoreView {
  std::uint32_t count = 0;   // word
  std::uint32_t base = 0;    // count at the start of the run
  std::uint32_t target = 0;  // arrivals that complete the tile
  std::int32_t arrived() const { return static_cast<std::int32_t>(count - base); }
};

/// One base word for a tensor whose tiles all grow alike, or always one per data tile.
enum class BasesOf : std::uint8_t { kTensorIfEqual, kEveryTile };

/// Semaphores of one tensor. `arrivals` is what producers make per run, per data tile.
struct TensorSync {
  CountedWords counted;
  std::vector<std::int64_t> arrivals;
  const std::uint32_t* targets = nullptr;  // device table; null: all equal `target`
  std::uint32_t target = 0;
  /// Kernel tiles of the only producer, where the target has a closed form.
  std::optional<Tiling> producer;
};

/// Sync memory of one node.
struct NodeSync {
  CountedWords begun;
  std::uint32_t* completed = nullptr;  // runs of this node that have ended
  CountedWords counter;
  const std::uint32_t* counter_targets = nullptr;
  std::uint32_t counter_target = 0;
  std::map<std::int32_t, std::uint32_t*> stamps;  // by operand index
};

/// What a node's context contains beside what its NodeSpec says.
struct ContextRequest {
  NodeId node = -1;
  const NodeSpec* spec = nullptr;
  /// Per operand: read operands poll, write operands signal; false leaves the words null.
  std::vector<bool> live;
  std::uint32_t flags = 0;  // SyncHeader flags
};

class SyncState {
 public:
  SyncState(Device& device, const RunOptions& options);
  ~SyncState();
  SyncState(const SyncState&) = delete;
  SyncState& operator=(const SyncState&) = delete;

  /// Semaphores for a tiled tensor whose producers make `arrivals` per run.
  TensorSync make_tensor(const Tensor& tensor, BasesOf bases, std::vector<std::int64_t> arrivals,
                         std::optional<Tiling> producer);
  /// Other arrivals in the next run, for a tensor made with a base per data tile.
  void set_arrivals(TensorSync& sync, std::vector<std::int64_t> arrivals,
                    std::optional<Tiling> producer);
  NodeSync make_node(const NodeSpec& spec, const TensorTable& tensors);
  /// The SyncContext<N> bytes; N is the number of sync slots of `spec`.
  std::vector<std::byte> context(const ContextRequest& request, const NodeSync& node,
                                 const TensorTable& tensors,
                                 const std::map<TensorId, TensorSync>& tensor_syncs);

  /// Entries that advance the bases of a tensor or a node by one run.
  static BaseUpdate update_of(const TensorSync& tensor);
  static std::vector<BaseUpdate> updates_of(const NodeSync& node, const NodeSpec& spec);
  /// The launch that ends a run.
  Launch base_update(NodeId id, const std::vector<BaseUpdate>& updates);

  /// What the wait kernel before a node's launch reports to.
  WaitKernelSync wait_kernel(NodeId id, const NodeSpec& spec) const;
  std::uint32_t* abort_word() const { return abort_; }
  HangReport* report() const { return report_; }
  bool aborted() const;
  void reset();

  void allocate_records(std::uint32_t capacity);
  /// Records written since the last call; `dropped` counts those that found the ring full.
  std::vector<TileRecord> take_records(std::uint64_t& dropped);

  Device& device() const { return device_; }
  /// Counts of every data tile, as they stand on the device.
  std::vector<SemaphoreView> view(const TensorSync& tensor) const;
  std::uint32_t read_word(const std::uint32_t* word) const;

 private:
  OperandSlot operand(const ContextRequest& request, std::int32_t index, const NodeSync& node,
                      const TensorTable& tensors,
                      const std::map<TensorId, TensorSync>& tensor_syncs);

  /// Longest wait; none on devices that find a deadlock themselves.
  std::uint64_t deadline_ns() const;

  Device& device_;
  RunOptions options_;
  SyncMemory memory_;
  std::uint32_t* abort_ = nullptr;
  HangReport* report_ = nullptr;
  TileRecord* records_ = nullptr;
  std::uint32_t* num_records_ = nullptr;
  std::uint32_t record_capacity_ = 0;
};

/// Number of sync slots a node uses.
std::int32_t num_sync_slots(const NodeSpec& spec);

}  // namespace tileweave

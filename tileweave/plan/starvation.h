// StarvationSearch: looks for blocks that wait while the block they wait for finds no SM.
//
// For the first unfinished node i and a later node j it goes through everything that can be in
// flight beside them (one launch, or one chain of programmatic launches, or one wait kernel per
// other stream) and asks Residency whether some SM keeps room for the next block of i, and, since a
// device may queue launches in any order, for the next block of each launch in flight. Called by
// GroundedSchedule in plan order; docs/grounds_and_proofs.md has the proof. Plan and order must
// outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/plan/happens_before.h"
#include "tileweave/plan/residency.h"
#include "tileweave/plan/verify.h"

namespace tileweave {

/// What a wait kernel (start rules wait_all and wait_first) takes from an SM; one block. Runtimes
/// that launch one must stay within it.
inline constexpr KernelResources kWaitKernelResources = {
    .threads = 32, .registers_per_thread = 32, .shared_bytes = 0};

class StarvationSearch {
 public:
  enum class What : std::uint8_t { kNode, kWaitKernel };

  struct Finding {
    bool starves = false;
    std::int64_t blocked = -1;  // SMs without room, at most; -1: nothing waits beside i
    std::string sentence;       // the numbers, for or against
  };

  StarvationSearch(const Plan& plan, const HappensBefore& order, const VerifyOptions& options)
      : plan_(&plan), order_(&order), options_(options), residency_(options.device) {}

  /// Takes notice of how the next node, or again the last one, is scheduled and related.
  void schedule(NodeId id, const ScheduledNode& node);

  bool has_wait_kernel(NodeId id) const { return at(id).has_wait_kernel; }
  /// Whether all blocks of `i` have begun before any of `j` begins, as far as options trust it.
  bool has_begun(NodeId i, NodeId j) const;
  /// Whether node `j`, the last one scheduled, or its wait kernel, can wait beside the unfinished
  /// node `i` and keep its blocks, or those of others in flight, from an SM.
  Finding search(NodeId i, NodeId j, What what);

 private:
  struct Known {
    std::int32_t rank = 0;
    std::int32_t stream = 0;
    std::int32_t device = 0;
    NodeId last_wait = -1;    // latest node that its blocks may wait for
    NodeId pred = -1;         // node before it on its rank
    NodeId stream_pred = -1;  // and on its stream
    bool has_wait_kernel = false;
    bool programmatic = false;
  };
  /// What is in flight at once, all of it later than the first unfinished node.
  struct Flight {
    std::vector<NodeId> nodes;    // launches
    std::vector<NodeId> waiting;  // those among them whose blocks may wait
    std::int64_t num_wait_kernels = 0;
    std::vector<std::int64_t> shape;  // equal for flights that cannot be told apart
  };

  const NodeSpec& spec(NodeId id) const { return plan_->nodes()[static_cast<std::size_t>(id)]; }
  const Known& at(NodeId id) const { return known_[static_cast<std::size_t>(id)]; }
  std::string name(NodeId id) const;
  bool wait_kernel_in_flight(NodeId i, NodeId j) const;
  bool is_gone(NodeId x, NodeId j, What what) const;
  Flight launch_flight(NodeId i, NodeId last, NodeId beside, What what) const;
  Flight wait_kernel_flight() const;
  std::vector<std::vector<Flight>> flights_beside(NodeId i, NodeId j, What what) const;
  Finding judge(NodeId i, const Flight& flight);
  std::string crowd_text(const Flight& flight) const;
  std::string fill_text(const KernelResources& need, const Flight& flight) const;

  const Plan* plan_;
  const HappensBefore* order_;
  VerifyOptions options_;
  Residency residency_;
  std::vector<Known> known_;
};

}  // namespace tileweave

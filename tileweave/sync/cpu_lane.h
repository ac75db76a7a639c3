// CpuLane: what the emulated device offers to one lane of a running block.
//
// sync/ defines the verbs, runtime/cpu implements them with fibers (a waiting lane hands its thread
// to another block). One CpuLane per lane; it lives as long as the block. Called only from the
// lane's own fiber.
#pragma once

#include <cstdint>

#include "tileweave/core/coord.h"
#include "tileweave/sync/wait.h"

namespace tileweave {

/// Told of every element box that a kernel touches through a checking view; throws Error naming the
/// node, operand and box for an access outside the declared boxes, before the wait that covers it
/// or after the signal. `operand` is the operand's index in the NodeSpec.
class AccessChecker {
 public:
  virtual ~AccessChecker() = default;
  virtual void on_read(int operand, const Box& box) = 0;
  virtual void on_write(int operand, const Box& box) = 0;
};

class CpuLane {
 public:
  virtual ~CpuLane() = default;

  virtual int lane() const = 0;
  virtual int num_lanes() const = 0;
  virtual std::int64_t block_index() const = 0;
  virtual std::uint32_t sm_index() const = 0;
  /// Monotonic nanoseconds (throughput, explore) or ticks of the virtual clock (model); never 0.
  virtual std::uint64_t now_ns() const = 0;

  /// Rendezvous of all lanes of the block: what any lane did before is visible to all after.
  /// Returns true where any lane passed true.
  virtual bool barrier_or(bool value) = 0;
  /// Value passed by lane 0, on every lane.
  virtual std::uint32_t broadcast(std::uint32_t value) = 0;

  /// The lane found `word` short of its goal: run somebody else. Returns when the lane should look
  /// again; `site` names the wait for deadlock reports.
  virtual void pause(const std::uint32_t* word, const WaitSite& site) = 0;
  /// The lane changed `word`: waiters on it may be worth running.
  virtual void wake(const std::uint32_t* word) = 0;

  /// Programmatic dependent launch, emulated.
  virtual void launch_dependents() = 0;
  virtual void grid_dependency_wait() = 0;

  /// Hooks of checking views and the model clock.
  virtual void on_begin() = 0;
  virtual void on_work(std::int64_t work) = 0;
  virtual void on_wait(int operand, const Coord& ktile) = 0;
  virtual void on_signal(int operand, const Coord& ktile) = 0;

  /// Judge of this block's accesses when the device runs with checking views, else null.
  virtual AccessChecker* checker() { return nullptr; }
};

}  // namespace tileweave

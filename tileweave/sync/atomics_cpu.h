// Atomics policy of the emulated device: std::atomic_ref for memory, CpuLane for everything else.
//
// Orders are spelt exactly as on the GPU (release add, acquire load), so ThreadSanitizer sees on
// the CPU what the GPU memory model would have to promise. Single-threaded devices use the same
// code.
#pragma once

#include <atomic>
#include <cstdint>

#include "tileweave/core/coord.h"
#include "tileweave/sync/cpu_lane.h"

namespace tileweave {

class AtomicsCpu {
 public:
  static constexpr std::uint32_t kFastPolls = 0;
  static constexpr std::uint32_t kPollsPerCheck = 1;

  explicit AtomicsCpu(CpuLane& lane) : lane_(&lane) {}

  int lane() const { return lane_->lane(); }
  int num_lanes() const { return lane_->num_lanes(); }
  std::int64_t block_index() const { return lane_->block_index(); }
  std::uint32_t sm_index() const { return lane_->sm_index(); }
  std::uint64_t now_ns() const { return lane_->now_ns(); }

  void barrier() { lane_->barrier_or(false); }
  bool barrier_or(bool value) { return lane_->barrier_or(value); }
  std::uint32_t broadcast(std::uint32_t value) { return lane_->broadcast(value); }

  std::uint32_t load_acquire(const std::uint32_t* word, bool /*system_scope*/) {
    return ref(word).load(std::memory_order_acquire);
  }
  std::uint32_t load_relaxed(const std::uint32_t* word) {
    return ref(word).load(std::memory_order_relaxed);
  }
  void add_release(std::uint32_t* word, std::uint32_t n, bool /*system_scope*/) {
    ref(word).fetch_add(n, std::memory_order_release);
    lane_->wake(word);
  }
  void add_relaxed(std::uint32_t* word, std::uint32_t n) {
    ref(word).fetch_add(n, std::memory_order_relaxed);
  }
  std::uint32_t fetch_add_relaxed(std::uint32_t* word, std::uint32_t n) {
    return ref(word).fetch_add(n, std::memory_order_relaxed);
  }
  std::uint32_t fetch_add_acq_rel(std::uint32_t* word, std::uint32_t n) {
    return ref(word).fetch_add(n, std::memory_order_acq_rel);
  }
  /// 0 -> 1; true for the one caller that did it.
  bool claim(std::uint32_t* word) {
    std::uint32_t expected = 0;
    return ref(word).compare_exchange_strong(expected, 1, std::memory_order_acq_rel);
  }
  void store_release_system(std::uint32_t* word, std::uint32_t value) {
    ref(word).store(value, std::memory_order_release);
  }

  void pause(const std::uint32_t* word, const WaitSite& site) { lane_->pause(word, site); }
  void launch_dependents() { lane_->launch_dependents(); }
  void grid_dependency_wait() { lane_->grid_dependency_wait(); }
  void fence_async_proxy() {}

  void on_begin() { lane_->on_begin(); }
  void on_work(std::int64_t work) { lane_->on_work(work); }
  void on_wait(int operand, const Coord& ktile) { lane_->on_wait(operand, ktile); }
  void on_signal(int operand, const Coord& ktile) { lane_->on_signal(operand, ktile); }

 private:
  // atomic_ref<const T> arrives with C++26; a load does not modify the word.
  static std::atomic_ref<std::uint32_t> ref(const std::uint32_t* word) {
    return std::atomic_ref<std::uint32_t>(*const_cast<std::uint32_t*>(word));
  }

  CpuLane* lane_;
};

}  // namespace tileweave

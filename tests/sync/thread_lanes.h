// Lanes as threads: the least that CpuLane needs to run SyncCta on real concurrency.
//
// A ThreadGrid starts one thread per lane of every block and joins them all; joining is the kernel
// boundary of these tests. Blocks share nothing but what the test gives them, so that
// ThreadSanitizer sees no order except the protocol's: a block barrier orders its own lanes only,
// and pause() yields without touching memory.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tileweave/sync/cpu_lane.h"

namespace tileweave::testing {

/// What the lanes of one block share.
class ThreadBlock {
 public:
  ThreadBlock(std::int64_t index, int num_lanes) : index_(index), num_lanes_(num_lanes) {}

  std::int64_t index() const { return index_; }
  int num_lanes() const { return num_lanes_; }

  bool barrier_or(bool value) {
    std::unique_lock lock(mutex_);
    any_ = any_ || value;
    const std::uint64_t phase = phase_;
    if (++arrived_ == num_lanes_) {
      result_ = any_;
      any_ = false;
      arrived_ = 0;
      ++phase_;
      all_arrived_.notify_all();
    } else {
      all_arrived_.wait(lock, [&] { return phase_ != phase; });
    }
    return result_;
  }

  std::uint32_t broadcast(int lane, std::uint32_t value) {
    if (lane == 0) slot_ = value;
    barrier_or(false);
    const std::uint32_t got = slot_;
    barrier_or(false);
    return got;
  }

 private:
  std::int64_t index_;
  int num_lanes_;
  std::mutex mutex_;
  std::condition_variable all_arrived_;
  int arrived_ = 0;
  std::uint64_t phase_ = 0;
  bool any_ = false;
  bool result_ = false;
  std::uint32_t slot_ = 0;
};

class ThreadLane : public CpuLane {
 public:
  ThreadLane(ThreadBlock& block, int lane) : block_(block), lane_(lane) {}

  int lane() const override { return lane_; }
  int num_lanes() const override { return block_.num_lanes(); }
  std::int64_t block_index() const override { return block_.index(); }
  std::uint32_t sm_index() const override { return static_cast<std::uint32_t>(block_.index()) % 7; }
  std::uint64_t now_ns() const override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }
  bool barrier_or(bool value) override { return block_.barrier_or(value); }
  std::uint32_t broadcast(std::uint32_t value) override { return block_.broadcast(lane_, value); }
  void pause(const std::uint32_t* /*word*/, const WaitSite& /*site*/) override {
    if (++pauses_ % 16 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else {
      std::this_thread::yield();
    }
  }
  void wake(const std::uint32_t* /*word*/) override {}
  void launch_dependents() override { ++launched_dependents; }
  void grid_dependency_wait() override { ++grid_waits; }
  void on_begin() override {}
  void on_work(std::int64_t /*work*/) override {}
  void on_wait(int /*operand*/, const Coord& /*ktile*/) override {}
  void on_signal(int /*operand*/, const Coord& /*ktile*/) override {}

  int launched_dependents = 0;
  int grid_waits = 0;

 private:
  ThreadBlock& block_;
  int lane_;
  std::uint32_t pauses_ = 0;
};

/// All blocks of one kernel, running from construction until join().
class ThreadGrid {
 public:
  using Kernel = std::function<void(ThreadLane& lane)>;

  ThreadGrid(int num_blocks, int num_lanes, const Kernel& kernel) {
    for (int b = 0; b < num_blocks; ++b) {
      blocks_.push_back(std::make_unique<ThreadBlock>(b, num_lanes));
      for (int l = 0; l < num_lanes; ++l) {
        threads_.emplace_back([kernel, block = blocks_.back().get(), l] {
          ThreadLane lane(*block, l);
          kernel(lane);
        });
      }
    }
  }
  ThreadGrid(ThreadGrid&&) = default;
  ~ThreadGrid() { join(); }

  void join() {
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  std::vector<std::unique_ptr<ThreadBlock>> blocks_;
  std::vector<std::thread> threads_;
};

/// One block of one lane on the calling thread.
class SingleLane : public ThreadLane {
 public:
  explicit SingleLane(std::int64_t block = 0) : ThreadLane(own_, 0), own_(block, 1) {}

 private:
  ThreadBlock own_;
};

}  // namespace tileweave::testing

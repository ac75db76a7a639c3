// Bell: threads sleep until somebody rings, over a futex.
//
// Ringing carries no memory order on purpose: it is done on fibers, and must not hand one fiber's
// history to another. A sleeper looks at what it waits for between `listen` and `sleep`, and sleeps
// for a bounded time, so a ring that comes in between is not lost.
#pragma once

#include <atomic>
#include <cstdint>

namespace tileweave::cpu {

class Bell {
 public:
  std::uint32_t listen() const { return rings_.load(std::memory_order_relaxed); }
  /// True: somebody has rung since `heard`. False: nobody has, for about `microseconds`.
  bool sleep(std::uint32_t heard, std::int64_t microseconds);
  /// Wakes every sleeper.
  void ring();
  /// Wakes every sleeper if there is one; cheap otherwise, and not seen by `listen` then.
  void ring_if_heard() {
    if (sleepers_.load(std::memory_order_relaxed) != 0) ring();
  }
  /// As ring_if_heard, but always seen by those who listen without sleeping.
  void ring_softly() {
    rings_.fetch_add(1, std::memory_order_relaxed);
    ring_if_heard();
  }
  /// From now on `ring_if_heard` rings.
  void lie_down() { sleepers_.fetch_add(1, std::memory_order_seq_cst); }
  void get_up() { sleepers_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace tileweave::cpu

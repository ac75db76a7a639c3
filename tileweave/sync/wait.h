// The bounded wait: poll, back off, leave on abort or deadline, report once.
//
// No wait of the library is unbounded (DESIGN principle 5). `reached` is the one comparison of
// counts anywhere: counts only grow, modulo 2^32, so the signed distance decides, and a run may
// cross 2^31 and 2^32 as long as one target stays below 2^31. The first waiter whose deadline
// expires claims the abort word (compare-and-swap) and alone writes the report; every other waiter
// sees the abort word within a few polls and leaves.
#pragma once

#include <cstdint>

#include "tileweave/core/target.h"
#include "tileweave/sync/context.h"

namespace tileweave {

/// sem >= base + target, modulo 2^32.
TW_HOST_DEVICE constexpr bool reached(std::uint32_t seen, std::uint32_t base,
                                      std::uint32_t target) {
  return static_cast<std::int32_t>(seen - base - target) >= 0;
}

/// What is being waited for; also what a hang report says.
struct WaitSite {
  WaitKind kind = WaitKind::kSemaphore;
  std::uint32_t operand = 0;
  std::uint32_t tile = 0;
  std::uint32_t base = 0;
  std::uint32_t target = 0;
  bool system_scope = false;
};

/// Claims the abort word; the winner publishes the report. Safe from any number of waiters.
template <class Atomics>
TW_NO_INLINE TW_HOST_DEVICE void report_hang(Atomics atomics, const WaitSite site,
                                             const std::uint32_t seen,
                                             const std::uint64_t waited_ns, const SyncHeader& h) {
  if (!atomics.claim(h.abort)) return;
  HangReport& r = *h.report;
  r.kind = static_cast<std::uint32_t>(site.kind);
  r.node = h.node;
  r.rank = h.rank;
  r.operand = site.operand;
  r.tile = site.tile;
  r.seen = seen;
  r.base = site.base;
  r.target = site.target;
  r.block = static_cast<std::uint32_t>(atomics.block_index());
  r.sm = atomics.sm_index();
  r.waited_ns = waited_ns;
  // Release at system scope: the host that reads kComplete reads the whole report.
  atomics.store_release_system(&r.state, HangReport::kComplete);
}

/// One look of a lasting wait at the abort word and the clock. Takes the time at which the wait
/// began to be watched (0: not yet) and returns it, or kLeave.
inline constexpr std::uint64_t kLeave = ~std::uint64_t{0};
template <class Atomics>
TW_NO_INLINE TW_HOST_DEVICE std::uint64_t watch_wait(Atomics atomics, const WaitSite site,
                                                     const std::uint32_t seen,
                                                     const std::uint64_t start_ns,
                                                     const SyncHeader& h) {
  if (atomics.load_relaxed(h.abort) != 0) return kLeave;
  if (h.deadline_ns == 0) return start_ns;
  const std::uint64_t now = atomics.now_ns();
  if (start_ns == 0) return now;
  if (now - start_ns <= h.deadline_ns) return start_ns;
  report_hang(atomics, site, seen, now - start_ns, h);
  return kLeave;
}

/// Decides when a wait has lasted too long or must leave because the run is aborted.
template <class Atomics>
class WaitClock {
 public:
  /// Called after each unsuccessful poll. False: leave.
  TW_HOST_DEVICE bool keep_waiting(Atomics& atomics, const WaitSite& site, std::uint32_t seen,
                                   const SyncHeader& h) {
    if (++polls_ % Atomics::kPollsPerCheck != 0) return true;
    start_ns_ = watch_wait(atomics, site, seen, start_ns_, h);
    return start_ns_ != kLeave;
  }

 private:
  std::uint64_t start_ns_ = 0;
  std::uint32_t polls_ = 0;
};

/// The part of a wait that has outlasted its fast polls: backs off, looks at abort and deadline.
template <class Atomics>
TW_NO_INLINE TW_HOST_DEVICE bool wait_long(Atomics atomics, const std::uint32_t* word,
                                           const WaitSite site, const SyncHeader& h) {
  std::uint32_t seen = atomics.load_acquire(word, site.system_scope);
  if (reached(seen, site.base, site.target)) return true;
  if ((h.flags & SyncHeader::kAssertReady) != 0) {
    // Serial mode: everything before this node has completed, so nobody is left to signal.
    report_hang(atomics, site, seen, 0, h);
    return false;
  }
  WaitClock<Atomics> clock;
  TW_ROLLED_LOOP
  for (;;) {
    atomics.pause(word, site);
    seen = atomics.load_acquire(word, site.system_scope);
    if (reached(seen, site.base, site.target)) return true;
    if (!clock.keep_waiting(atomics, site, seen, h)) return false;
  }
}

/// Waits until the word has reached base + target. One lane calls it; the acquire load that sees
/// the last arrival makes every arriver's writes visible to this lane. False: the run is aborted.
/// Most waits end within a few polls: those, and nothing else, stand in the kernel's straight line.
template <class Atomics>
TW_HOST_DEVICE bool wait_word(Atomics& atomics, const std::uint32_t* word, const WaitSite& site,
                              const SyncHeader& h) {
  TW_ROLLED_LOOP
  for (std::uint32_t poll = 0; poll < Atomics::kFastPolls; ++poll) {
    if (reached(atomics.load_acquire(word, site.system_scope), site.base, site.target)) return true;
  }
  return wait_long(atomics, word, site, h);
}

}  // namespace tileweave

// Exhaustive search through all interleavings of the tile protocol, with and without faults.
//
// The program: run r = 1, 2 of a tensor with two data tiles. Each of two producer blocks writes
// part of both tiles and arrives on both; consumer 0 waits for both tiles, consumer 1 for tile 1;
// both signal one further tile. Blocks have two lanes; lane i signals or polls the i-th data tile.
// After a run its last node adds the targets to the base. kModelledStatements says which statement
// of the library each step stands for; a test demands that the statement is still there.
//
// Memory: every write, read, base read and base update is an event, and each lane and each word
// carries the set of events that happen before it (a vector clock over finitely many events). A
// release joins the lane's set into the word, an acquire joins the word's set into the lane, a
// block barrier joins the sets of its lanes, a kernel boundary those of all completed lanes. What
// is read or overwritten must lie in the set. Polls read the newest count: with counts that only
// grow an older one means polling again, which is another interleaving. Relaxed looks at the abort
// word may see an old value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tileweave::testing {

enum class ProtocolFault {
  kNone,
  kSignalWithoutRelease,   // relaxed add
  kPollWithoutAcquire,     // relaxed load
  kNoBarrierBeforeSignal,  // producer: a lane signals before the other lane's writes
  kNoBarrierAfterWait,     // consumer: a lane reads before the other lane's poll
  kEarlyReuse,             // run 2's producers do not wait for run 1's consumers
  kUnsignedCompare,        // seen >= base + target
  kSignedCompare,          // int32(seen) >= int32(base + target)
  kEarlyBaseUpdate,        // the base update waits for the producers only
  kNoBaseUpdate,           // the base never moves
  kDoubleSignal,           // one kernel tile arrives twice on one data tile
  kLostSignal,             // one arrival never comes: a hang, unless waits end
  kReadAfterFailedWait,    // a consumer ignores that its wait was given up
  kSignalAfterFailedWait,  // a consumer that gave up its wait signals its output
  kAbortSeenByOneLane,     // the block does not agree on a failed wait
  kReportWithoutClaim,     // deadline: look at the abort word, then write the report
};

/// Where aborts may come from, at any moment.
enum class AbortSource { kNever, kDeadline, kDeadlineOrHost };

struct SearchOptions {
  std::uint32_t start_count = 0;  // words and bases before run 1
  ProtocolFault fault = ProtocolFault::kNone;
  AbortSource aborts = AbortSource::kNever;
};

struct SearchResult {
  std::string violation;          // empty: no interleaving breaks a rule
  std::vector<std::string> path;  // shortest interleaving that does
  std::uint64_t states = 0;
  std::uint64_t transitions = 0;
  std::uint64_t complete_ends = 0;  // end states in which both runs completed
  std::uint64_t aborted_ends = 0;   // end states of runs that were aborted

  bool ok() const { return violation.empty(); }
};

SearchResult search_protocol(const SearchOptions& options);

const char* name_of(ProtocolFault fault);

struct ModelledStatement {
  const char* step;
  const char* file;  // below tileweave/
  const char* text;
};

inline constexpr ModelledStatement kModelledStatements[] = {
    {"begin: lane 0 looks at the abort word", "sync/sync_cta.h",
     "abort_ = atomics_.load_relaxed(h.abort);"},
    {"begin: a block that waits (consumers) agrees only there", "sync/sync_cta.h",
     "if ((h.flags & SyncHeader::kWaits) != 0) return true;"},
    {"begin: any other block (producers) agrees at once", "sync/sync_cta.h",
     "if (!atomics_.barrier_or(abort_ != 0)) return true;"},
    {"wait: the look of the beginning counts as a failure", "sync/sync_cta.h",
     "if (abort_ != 0) return false;"},
    {"wait: a lane takes every num_lanes-th data tile", "sync/sync_cta.h",
     "for (std::int64_t i = atomics.lane(); i < walk.count; i += atomics.num_lanes()) {"},
    {"wait: a lane reads the base", "sync/sync_cta.h",
     "const std::uint32_t base = op.base[tile * tiles.base_stride];"},
    {"wait: poll", "sync/wait.h", "seen = atomics.load_acquire(word, site.system_scope);"},
    {"wait: compare", "sync/wait.h", "if (reached(seen, site.base, site.target)) return true;"},
    {"wait: leave on the abort word", "sync/wait.h",
     "if (atomics.load_relaxed(h.abort) != 0) return kLeave;"},
    {"wait: deadline, first claim reports", "sync/wait.h", "if (!atomics.claim(h.abort)) return;"},
    {"wait: the block agrees", "sync/sync_cta.h",
     "const Ready ready(!atomics_.barrier_or(failed));"},
    {"signal: block barrier after the writes", "sync/sync_cta.h", "atomics_.barrier();"},
    {"signal: one release per data tile", "sync/sync_cta.h",
     "atomics.add_release(op.words + walk.at(i) * tiles.word_stride, 1, system_scope);"},
};

}  // namespace tileweave::testing

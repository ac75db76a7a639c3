#include "tests/sync/protocol_search.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "tileweave/sync/wait.h"

namespace tileweave::testing {
namespace {

constexpr int kRuns = 2;
constexpr int kBlocks = 4;  // per run: two producers, two consumers
constexpr int kLanesPerRun = 2 * kBlocks;
constexpr int kLanes = kRuns * kLanesPerRun;
constexpr std::uint8_t kTarget = 2;  // arrivals on each data tile per run

/// Where a lane stands; each value is what the lane does next.
enum Step : std::uint8_t {
  kInactive,  // not launched
  kBegin,
  kBeginBarrier,
  kWrite,
  kSignalBarrier,
  kSignal,
  kSignalAgain,  // planted
  kReadBase,
  kPoll,
  kLook,    // polled in vain: polls again, leaves or lets the deadline expire
  kReport,  // planted: has looked at the abort word, will write the report
  kWaitBarrier,
  kRead,
  kOutputBarrier,
  kSignalOutput,
  kDone,
};

// Plain bytes without padding, so that states compare and hash as memory.
struct State {
  std::array<std::uint32_t, kLanes> known;  // events before each lane's next step
  std::array<std::uint32_t, 2> word_known;  // events released into each word
  std::uint32_t boundary_known;             // events before everything that is launched next
  std::uint32_t happened;                   // all events so far
  std::array<std::uint8_t, kLanes> step;
  std::array<std::uint8_t, kLanes> base_seen;  // base updates visible in the base that was read
  std::array<std::uint8_t, 2> count;           // arrivals since the start count
  std::uint16_t failed;                        // lanes whose look or wait failed
  std::array<std::uint8_t, 2> outputs;         // per run: arrivals on the further tile
  std::uint8_t base_updates;
  std::uint8_t runs_ended;
  std::uint8_t abort;  // 0, or the run in which it was set
  std::uint8_t reports;
  std::uint8_t host_abort;
  std::uint8_t recovered;
};
static_assert(std::has_unique_object_representations_v<State>);

int lane_of(int run, int block, int lane) {
  return run * kLanesPerRun + block * 2 + lane;
}
int run_of(int l) {
  return l / kLanesPerRun;
}
int block_of(int l) {
  return l % kLanesPerRun / 2;
}
bool is_producer(int l) {
  return block_of(l) < 2;
}
/// Data tile that a lane signals or polls; -1: none.
int tile_of(int l) {
  if (block_of(l) == 3) return l % 2 == 0 ? 1 : -1;  // consumer 1 meets tile 1 only
  return l % 2;
}

std::uint32_t bit(int n) {
  return std::uint32_t{1} << n;
}
/// The lane's write (producers) or read (consumers), and its read of the base.
std::uint32_t data_event(int l) {
  return bit(l);
}
std::uint32_t base_event(int l) {
  return bit(16 + run_of(l) * 4 + l % 4);
}
std::uint32_t update_event(int run) {
  return bit(24 + run);
}
constexpr std::uint32_t kAllUpdates = std::uint32_t{3} << 24;

std::uint32_t writes_of(int run) {
  return std::uint32_t{0x0f} << (run * kLanesPerRun);
}
std::uint32_t reads_of(int run) {
  return std::uint32_t{0xf0} << (run * kLanesPerRun);
}
std::uint32_t base_reads_of(int run) {
  return std::uint32_t{0x0f} << (16 + run * 4);
}

class Search {
 public:
  explicit Search(const SearchOptions& options) : options_(options), slots_(1U << 16) {}

  SearchResult run() {
    State first{};
    launch(first, 0, 0, kBlocks);
    add(first, 0, "start");
    for (std::uint32_t i = 0; i < states_.size() && result_.violation.empty(); ++i) {
      from_ = i;
      moved_ = false;
      const State& state = states_[i];
      for (int l = 0; l < kLanes; ++l) advance(state, l);
      for (int run = 0; run < kRuns; ++run) {
        for (int b = 0; b < kBlocks; ++b) pass_barrier(state, run, b);
      }
      end_run(state);
      abort_from_host(state);
      if (!moved_) judge_end(state);
    }
    result_.states = states_.size();
    return std::move(result_);
  }

 private:
  bool fault(ProtocolFault f) const { return options_.fault == f; }

  std::uint32_t start_count(const State& s) const {
    return s.recovered != 0 ? 0 : options_.start_count;
  }

  bool is_reached(const State& s, int l) const {
    const std::uint32_t seen = start_count(s) + s.count[static_cast<std::size_t>(tile_of(l))];
    const std::uint32_t base =
        start_count(s) + std::uint32_t{kTarget} * s.base_seen[static_cast<std::size_t>(l)];
    if (fault(ProtocolFault::kUnsignedCompare)) return seen >= base + kTarget;
    if (fault(ProtocolFault::kSignedCompare)) {
      return static_cast<std::int32_t>(seen) >= static_cast<std::int32_t>(base + kTarget);
    }
    return reached(seen, base, kTarget);
  }

  /// A kernel that waits takes the answer of its look to its first wait; others agree at once.
  static Step after_begin(int l) { return is_producer(l) ? kBeginBarrier : kReadBase; }

  void launch(State& s, int run, int first_block, int end_block) const {
    for (int b = first_block; b < end_block; ++b) {
      for (int lane = 0; lane < 2; ++lane) {
        const auto l = static_cast<std::size_t>(lane_of(run, b, lane));
        s.step[l] = lane == 0 ? kBegin : after_begin(static_cast<int>(l));
        s.known[l] = s.boundary_known;
      }
    }
  }

  static bool all_done(const State& s, int run, int end_block = kBlocks) {
    for (int l = lane_of(run, 0, 0); l < lane_of(run, end_block, 0); ++l) {
      if (s.step[static_cast<std::size_t>(l)] != kDone) return false;
    }
    return true;
  }

  static std::uint32_t join(const State& s, int run, int end_block = kBlocks) {
    std::uint32_t known = s.boundary_known;
    for (int l = lane_of(run, 0, 0); l < lane_of(run, end_block, 0); ++l) {
      known |= s.known[static_cast<std::size_t>(l)];
    }
    return known;
  }

  /// One step of one lane that is not at a barrier.
  void advance(const State& s, int l) {
    const auto i = static_cast<std::size_t>(l);
    State n = s;
    switch (static_cast<Step>(s.step[i])) {
      case kBegin:
        n.step[i] = after_begin(l);
        // A relaxed look: an abort of this run may be missed, one before the boundary may not.
        if (s.abort == 0 || s.abort == run_of(l) + 1) add(n, l, "sees no abort");
        if (s.abort != 0) {
          n.failed |= static_cast<std::uint16_t>(bit(l));
          add(n, l, "sees the abort");
        }
        return;
      case kWrite:
        n.step[i] = kSignalBarrier;
        n.known[i] |= data_event(l);
        n.happened |= data_event(l);
        if (run_of(l) > 0) {
          const std::uint32_t before = s.happened & (reads_of(0) | writes_of(0));
          if ((before & ~s.known[i]) != 0) {
            return violate(l, "writes", "a write is not ordered after the last run's accesses");
          }
        }
        return add(n, l, "writes");
      case kSignal: {
        const auto t = static_cast<std::size_t>(tile_of(l));
        const bool lost = fault(ProtocolFault::kLostSignal) && l == lane_of(0, 1, 1);
        if (!lost) {
          ++n.count[t];
          if (!fault(ProtocolFault::kSignalWithoutRelease)) n.word_known[t] |= s.known[i];
        }
        const bool again = fault(ProtocolFault::kDoubleSignal) && l == lane_of(0, 0, 1);
        n.step[i] = again ? kSignalAgain : kDone;
        return add(n, l, lost ? "does not signal" : "signals");
      }
      case kSignalAgain:
        ++n.count[static_cast<std::size_t>(tile_of(l))];
        n.step[i] = kDone;
        return add(n, l, "signals again");
      case kReadBase:
        n.step[i] = tile_of(l) < 0 ? kWaitBarrier : kPoll;
        if (tile_of(l) >= 0) {
          n.known[i] |= base_event(l);
          n.happened |= base_event(l);
          n.base_seen[i] = s.base_updates;
          if ((s.happened & kAllUpdates & ~s.known[i]) != 0) {
            return violate(l, "reads the base", "a base read is not ordered after its update");
          }
        }
        return add(n, l, "reads the base");
      case kPoll:
      case kLook:
        return poll(s, l);
      case kReport:
        n.abort = static_cast<std::uint8_t>(run_of(l) + 1);
        ++n.reports;
        n.failed |= static_cast<std::uint16_t>(bit(l));
        n.step[i] = kWaitBarrier;
        if (n.reports > 1) return violate(l, "reports", "two waiters wrote the hang report");
        return add(n, l, "reports");
      case kRead:
        n.step[i] = kOutputBarrier;
        n.known[i] |= data_event(l);
        n.happened |= data_event(l);
        if ((writes_of(run_of(l)) & ~s.known[i]) != 0) {
          return violate(l, "reads", "a read is not ordered after the writes it must see");
        }
        if (run_of(l) == 0 && (s.happened & writes_of(1)) != 0) {
          return violate(l, "reads", "the data was overwritten before it was read");
        }
        return add(n, l, "reads");
      case kSignalOutput:
        ++n.outputs[static_cast<std::size_t>(run_of(l))];
        n.step[i] = kDone;
        if ((s.known[i] & data_event(l)) == 0) {
          return violate(l, "signals its output", "a block that gave up its wait signalled");
        }
        return add(n, l, "signals its output");
      default:
        return;  // inactive, done, or waiting at a barrier
    }
  }

  void poll(const State& s, int l) {
    const auto i = static_cast<std::size_t>(l);
    State n = s;
    if (is_reached(s, l)) {
      n.step[i] = kWaitBarrier;
      if (!fault(ProtocolFault::kPollWithoutAcquire)) {
        n.known[i] |= s.word_known[static_cast<std::size_t>(tile_of(l))];
      }
      add(n, l, "finds its tile complete");
    } else if (s.step[i] == kPoll) {
      n.step[i] = kLook;
      add(n, l, "finds its tile incomplete");
    }
    if (s.step[i] != kLook) return;
    // The count may have been reached since the poll; the lane does not know.
    n = s;
    n.step[i] = kWaitBarrier;
    n.failed |= static_cast<std::uint16_t>(bit(l));
    if (s.abort != 0) {
      add(n, l, "leaves its wait");
    } else if (options_.aborts != AbortSource::kNever) {
      if (fault(ProtocolFault::kReportWithoutClaim)) {
        n = s;
        n.step[i] = kReport;
        return add(n, l, "is about to report");
      }
      n.abort = static_cast<std::uint8_t>(run_of(l) + 1);
      ++n.reports;
      add(n, l, "claims the abort and reports");
    }
  }

  /// All lanes of a block leave a barrier; where the fault removed it, each lane leaves alone.
  void pass_barrier(const State& s, int run, int block) {
    const int lanes[2] = {lane_of(run, block, 0), lane_of(run, block, 1)};
    const auto at = [&](int l) { return static_cast<Step>(s.step[static_cast<std::size_t>(l)]); };
    for (const int l : lanes) {
      const bool removed =
          (at(l) == kSignalBarrier && fault(ProtocolFault::kNoBarrierBeforeSignal)) ||
          (at(l) == kWaitBarrier && fault(ProtocolFault::kNoBarrierAfterWait));
      if (!removed) continue;
      State n = s;
      leave_barrier(n, l, (s.failed & bit(l)) != 0);
      add(n, l, "passes a missing barrier");
    }
    const Step step = at(lanes[0]);
    if (step != at(lanes[1])) return;
    if (step != kBeginBarrier && step != kSignalBarrier && step != kWaitBarrier &&
        step != kOutputBarrier) {
      return;
    }
    State n = s;
    const std::uint32_t known =
        s.known[static_cast<std::size_t>(lanes[0])] | s.known[static_cast<std::size_t>(lanes[1])];
    const bool failed = (s.failed & (bit(lanes[0]) | bit(lanes[1]))) != 0;
    for (const int l : lanes) {
      n.known[static_cast<std::size_t>(l)] = known;
      const bool alone = fault(ProtocolFault::kAbortSeenByOneLane) && step == kWaitBarrier;
      leave_barrier(n, l, alone ? (s.failed & bit(l)) != 0 : failed);
    }
    add(n, lanes[0], "and its block pass a barrier");
  }

  void leave_barrier(State& n, int l, bool failed) const {
    auto& step = n.step[static_cast<std::size_t>(l)];
    switch (static_cast<Step>(step)) {
      case kBeginBarrier:
        step = failed ? kDone : kWrite;
        return;
      case kSignalBarrier:
        step = kSignal;
        return;
      case kWaitBarrier:
        step = !failed || fault(ProtocolFault::kReadAfterFailedWait) ? kRead
               : fault(ProtocolFault::kSignalAfterFailedWait)        ? kOutputBarrier
                                                                     : kDone;
        return;
      default:
        step = l % 2 == 0 ? kSignalOutput : kDone;
        return;
    }
  }

  /// The run's last node, and the launch of what comes after it.
  void end_run(const State& s) {
    const int run = s.runs_ended;
    if (fault(ProtocolFault::kEarlyReuse) && run == 0 && all_done(s, 0, 2) &&
        s.step[static_cast<std::size_t>(lane_of(1, 0, 0))] == kInactive) {
      State n = s;
      n.boundary_known = join(s, 0, 2);
      launch(n, 1, 0, 2);
      n.boundary_known = s.boundary_known;
      add(n, lane_of(1, 0, 0), "is launched early");
    }
    if (run == kRuns) return;
    const int waits_for = fault(ProtocolFault::kEarlyBaseUpdate) ? 2 : kBlocks;
    if (!all_done(s, run, waits_for)) return;
    const bool updated = (s.happened & update_event(run)) != 0;
    if (s.abort == 0 && !updated) {
      State n = s;
      n.boundary_known = join(s, run, waits_for) | update_event(run);
      n.happened |= update_event(run);
      if (!fault(ProtocolFault::kNoBaseUpdate)) ++n.base_updates;
      if ((s.happened & base_reads_of(run) & ~join(s, run, waits_for)) != 0) {
        return violate(-1, "base update", "a base update is not ordered after the waits");
      }
      if (waits_for == kBlocks) close_run(n, run);
      return add(n, -1, "base update");
    }
    if (!all_done(s, run)) return;
    State n = s;
    n.boundary_known = join(s, run);
    if (s.abort == 0) {  // the update came early
      close_run(n, run);
      return add(n, -1, "end of the run");
    }
    close_run(n, run);
    add(n, -1, "later nodes of the aborted run");
    if (run + 1 == kRuns) return;
    // recover(): all ranks idle, so everything is ordered; then words, bases and abort are zeroed.
    n.abort = n.reports = n.host_abort = n.base_updates = 0;
    n.happened &= ~kAllUpdates;
    n.count = {};
    n.word_known = {};
    n.recovered = 1;
    add(n, -1, "recover");
  }

  void close_run(State& n, int run) const {
    ++n.runs_ended;
    if (run + 1 < kRuns) {
      const bool early = n.step[static_cast<std::size_t>(lane_of(1, 0, 0))] != kInactive;
      launch(n, run + 1, early ? 2 : 0, kBlocks);
    }
    for (int l = lane_of(run, 0, 0); l < lane_of(run, kBlocks, 0); ++l) {  // one name per state
      n.known[static_cast<std::size_t>(l)] = 0;
      n.base_seen[static_cast<std::size_t>(l)] = 0;
      n.failed &= static_cast<std::uint16_t>(~bit(l));
    }
  }

  void abort_from_host(const State& s) {
    if (options_.aborts != AbortSource::kDeadlineOrHost || s.abort != 0 || s.runs_ended == kRuns) {
      return;
    }
    State n = s;
    n.abort = static_cast<std::uint8_t>(s.runs_ended + 1);
    n.host_abort = 1;
    add(n, -1, "host sets the abort word");
  }

  /// A state that nothing leaves must be an end, and a right one.
  void judge_end(const State& s) {
    if (s.runs_ended != kRuns) return violate(-1, "end", "nobody can move: deadlock");
    if (s.abort != 0) {
      ++result_.aborted_ends;
      if (s.reports + s.host_abort != 1) {
        violate(-1, "end", "an aborted run has not exactly one cause");
      }
      return;
    }
    ++result_.complete_ends;
    const int runs = s.recovered != 0 ? 1 : kRuns;
    for (const std::uint8_t count : s.count) {
      if (count != runs * kTarget || s.base_updates != runs) {
        return violate(-1, "end", "a count does not equal its base after the last run");
      }
    }
    if (s.outputs[1] != 2 || (s.recovered == 0 && s.outputs[0] != 2)) {
      violate(-1, "end", "a block of a complete run did not signal once");
    }
  }

  static std::string describe(int l, const char* what) {
    if (l < 0) return what;
    return std::string(is_producer(l) ? "producer " : "consumer ") +
           std::to_string(block_of(l) % 2) + " lane " + std::to_string(l % 2) + " of run " +
           std::to_string(run_of(l) + 1) + " " + what;
  }

  void violate(int l, const char* what, const char* rule) {
    moved_ = true;
    if (!result_.violation.empty()) return;
    result_.violation = rule;
    result_.path.push_back(describe(l, what));
    for (std::uint32_t i = from_; i != 0; i = came_[i].from) {
      result_.path.push_back(describe(came_[i].lane, came_[i].what));
    }
    std::reverse(result_.path.begin(), result_.path.end());
  }

  static std::uint64_t hash(const State& s) {
    std::array<std::uint32_t, sizeof(State) / 4> words;
    static_assert(sizeof(State) % 4 == 0);
    std::memcpy(words.data(), &s, sizeof(State));
    std::uint64_t h = 0x9e3779b97f4a7c15ULL;
    for (const std::uint32_t w : words) {
      h = (h ^ w) * 0xff51afd7ed558ccdULL;
      h ^= h >> 32;
    }
    return h;
  }

  void add(const State& s, int l, const char* what) {
    moved_ = true;
    if (!states_.empty()) ++result_.transitions;
    if (2 * (states_.size() + 1) > slots_.size()) grow();
    const std::uint64_t h = hash(s);
    const auto tag = static_cast<std::uint32_t>(h >> 32);
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = h & mask;
    for (; slots_[at].number != 0; at = (at + 1) & mask) {
      if (slots_[at].tag == tag && same(states_[slots_[at].number - 1], s)) return;
    }
    states_.push_back(s);
    came_.push_back({from_, l, what});
    slots_[at] = {static_cast<std::uint32_t>(states_.size()), tag};
  }

  static bool same(const State& a, const State& b) {
    return std::memcmp(&a, &b, sizeof(State)) == 0;
  }

  void grow() {
    const std::size_t mask = slots_.size() * 2 - 1;
    slots_.assign(slots_.size() * 2, {});
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
      const std::uint64_t h = hash(states_[i]);
      std::size_t at = h & mask;
      while (slots_[at].number != 0) at = (at + 1) & mask;
      slots_[at] = {i + 1, static_cast<std::uint32_t>(h >> 32)};
    }
  }

  /// A place of the hash table: a state's number from 1 (0: free) and part of its hash.
  struct Slot {
    std::uint32_t number = 0;
    std::uint32_t tag = 0;
  };
  struct Came {
    std::uint32_t from;
    int lane;
    const char* what;
  };
  SearchOptions options_;
  SearchResult result_;
  std::deque<State> states_;  // never moves: 10^6 states are not copied when it grows
  std::vector<Came> came_;
  std::vector<Slot> slots_;
  std::uint32_t from_ = 0;
  bool moved_ = false;
};

}  // namespace

SearchResult search_protocol(const SearchOptions& options) {
  return Search(options).run();
}

const char* name_of(ProtocolFault fault) {
  switch (fault) {
    case ProtocolFault::kNone:
      return "none";
    case ProtocolFault::kSignalWithoutRelease:
      return "signal without release";
    case ProtocolFault::kPollWithoutAcquire:
      return "poll without acquire";
    case ProtocolFault::kNoBarrierBeforeSignal:
      return "no barrier before the signal";
    case ProtocolFault::kNoBarrierAfterWait:
      return "no barrier after the wait";
    case ProtocolFault::kEarlyReuse:
      return "early reuse";
    case ProtocolFault::kUnsignedCompare:
      return "unsigned compare";
    case ProtocolFault::kSignedCompare:
      return "signed compare";
    case ProtocolFault::kEarlyBaseUpdate:
      return "early base update";
    case ProtocolFault::kNoBaseUpdate:
      return "no base update";
    case ProtocolFault::kDoubleSignal:
      return "double signal";
    case ProtocolFault::kLostSignal:
      return "lost signal";
    case ProtocolFault::kReadAfterFailedWait:
      return "read after a failed wait";
    case ProtocolFault::kSignalAfterFailedWait:
      return "signal after a failed wait";
    case ProtocolFault::kAbortSeenByOneLane:
      return "abort seen by one lane";
    case ProtocolFault::kReportWithoutClaim:
      return "report without claim";
  }
  return "?";
}

}  // namespace tileweave::testing

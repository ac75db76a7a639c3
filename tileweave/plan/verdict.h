// Verdict: what verify() found out about a plan. Plain values, printable.
//
// `faults` make a plan unrunnable; each is one sentence that names node, tensor, tile and numbers.
// `edges` is the report: every overlapped edge with its ground, or the full dependency it was
// downgraded to and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/plan/plan.h"

namespace tileweave {

enum class FaultKind : std::uint8_t {
  kTooFewArrivals,
  kTooManyArrivals,
  kUncoveredRead,    // an element is read that no waited tile, and no producer, covers
  kUnsatisfiedWait,  // a wait that nobody signals
  kDoubleWrite,      // two kernel tiles write one element without a declared reduction
  kTilingsDisagree,  // an operand's map was made for another data tiling
  kOrderNotPermutation,
  kBackwardWait,  // a wait for a node of later position, or of its own
  kBufferReusedEarly,
  kStarvation,
  kBlockFitsNoSm,
  kStableReadOfWrittenBox,
  kIndexOverflow,
  kSignalThroughView,
  kUndeclaredWrite,  // a constant is written, or a state box outside the declared ones
};

const char* name_of(FaultKind kind);

struct Fault {
  FaultKind kind;
  std::string sentence;
  NodeId node = -1;
  TensorId tensor = kNoTensor;
  std::int64_t tile = -1;
};

/// Why an overlapped edge cannot starve the block it waits for (DESIGN principle 4).
enum class Ground : std::uint8_t { kNone, kNotNeeded, kCapacity, kCounted, kOrdered };

const char* name_of(Ground ground);

/// One data dependency: `to` reads what `from` wrote.
struct EdgeReport {
  NodeId from = -1;
  NodeId to = -1;
  TensorId tensor = kNoTensor;
  EdgeKind requested = EdgeKind::kTile;
  EdgeKind kind = EdgeKind::kTile;  // after downgrades
  StartRule start = StartRule::kNone;
  Ground ground = Ground::kNotNeeded;
  std::string why;  // numbers of the proof, or reason of the downgrade
};

/// When a node may start, after downgrades.
enum class Release : std::uint8_t {
  kCompleted,        // the other node has completed
  kProgrammatic,     // PDL: all its blocks have begun; data only after the grid dependency wait
  kLaunchCompleted,  // launch-completion event: best effort "all its blocks have begun"
  kAllBegun,         // a wait kernel counted all its blocks as begun
  kFirstBegun,       // a wait kernel saw one of its blocks begin (the paper's wait kernel)
};

const char* name_of(Release release);

struct Dependency {
  NodeId on = -1;
  Release release = Release::kCompleted;
};

struct ScheduledNode {
  std::int32_t stream = 0;
  std::vector<Dependency> after = {};  // beside the completion of the node before it on its stream
};

/// Streams and dependencies of every node, in node order.
struct Schedule {
  std::int32_t num_streams = 1;
  std::vector<ScheduledNode> nodes;
};

struct Verdict {
  std::vector<Fault> faults;
  std::vector<EdgeReport> edges;
  Schedule schedule;  // valid when ok()

  bool ok() const { return faults.empty(); }
  /// Number of edges that ended as full dependencies though something else was asked for.
  std::int32_t num_downgrades() const;
  /// The report as an aligned text table.
  std::string table(const Plan& plan) const;
};

/// Throws Error with the first fault's sentence (and how many more there are).
void throw_if_faulty(const Verdict& verdict, const Plan& plan);

}  // namespace tileweave

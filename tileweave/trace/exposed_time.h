// Where the time of a run went, operator by operator, when operators overlap.
//
// At any moment time is attributed to the earliest finishing operator among those that have not
// finished: a later kernel pays only for what sticks out after all earlier finishing kernels are
// done. With the nodes of one rank sorted by (finish, position):
//     exposed(first) = finish(first) - run start
//     exposed(node)  = finish(node) - finish(previous)
// where finish(node) is the last end of its records and run start the first begin of any record on
// any rank. Every moment is counted once, also one in which no block runs (it goes to whoever
// finishes next), so the exposed times of a rank add up to its makespan exactly. Of nodes that
// finish at the same time the first by position gets the time. Throws Error as check_trace does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/trace/trace.h"

namespace tileweave {

struct NodeTime {
  std::uint32_t node = 0;     // index into Trace::nodes
  std::uint64_t tiles = 0;    // records; where 0, all that follows is 0
  std::uint64_t start = 0;    // first begin, from the run start
  std::uint64_t finish = 0;   // last end, from the run start
  std::uint64_t exposed = 0;  //
  std::uint64_t waiting = 0;  // sum over records of their wait span
  std::uint64_t busy = 0;     // sum over records of what is left of [begin, end]
};

/// Nodes of one rank with the same TraceNode::op, added up.
struct OperatorTime {
  std::string op;
  std::uint64_t nodes = 0;
  std::uint64_t tiles = 0;
  std::uint64_t exposed = 0;
  std::uint64_t waiting = 0;
  std::uint64_t busy = 0;
};

struct RankTime {
  std::uint32_t rank = 0;
  std::uint64_t makespan = 0;           // last end on this rank, from the run start
  std::vector<NodeTime> nodes;          // by position
  std::vector<OperatorTime> operators;  // by exposed time, largest first
};

/// SM time (SMs x makespan) by what the SM did; the three add up to `total`.
struct SmTime {
  std::uint64_t num_sms = 0;    // of all ranks
  std::uint64_t computing = 0;  // at least one resident block was past or before its wait
  std::uint64_t waiting = 0;    // blocks were resident and all of them waited
  std::uint64_t idle = 0;       // no block was resident
  std::uint64_t total() const { return computing + waiting + idle; }
};

struct ExposedTime {
  std::uint64_t run_start = 0;  // on the clock of the trace
  std::uint64_t makespan = 0;   // longest of the ranks
  std::vector<RankTime> ranks;  // ascending
  SmTime sm_time;
};

ExposedTime exposed_time(const Trace& trace);

/// Tables for a terminal: SM time, then per rank operators and nodes. Says whether the clock was
/// measured or modelled and how many records were lost.
std::string exposed_time_table(const Trace& trace);

}  // namespace tileweave

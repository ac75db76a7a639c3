// Rows of a timeline: every SM of every rank gets as many lanes as it ever held blocks at once.
//
// Shared by the Perfetto and the HTML exporter, so that both show a block at the same place.
// Deterministic: depends on the records alone, not on their order in the trace except between
// records that agree in everything else. Two records in one lane never overlap (they may touch).
#pragma once

#include <cstdint>
#include <vector>

#include "tileweave/trace/trace.h"

namespace tileweave {

struct TraceLane {
  std::uint32_t rank = 0;
  std::uint32_t sm = 0;
  std::uint32_t lane = 0;              // 0, 1, ... within (rank, sm)
  std::vector<std::uint32_t> records;  // by begin; indices into Trace::records
};

struct LaneLayout {
  std::vector<TraceLane> lanes;               // by rank, SM, lane
  std::vector<std::uint32_t> lane_of_record;  // index into lanes
};

/// Ranks that occur in nodes or records, ascending.
std::vector<std::uint32_t> ranks_of(const Trace& trace);

/// Lays out a checked trace. SMs below num_sms_of(trace) without a record get one empty lane.
LaneLayout layout_lanes(const Trace& trace);

}  // namespace tileweave

// From tile records to a Trace: names, and an arrow for every tile that a record waited for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "tileweave/plan/plan.h"
#include "tileweave/trace/trace.h"

namespace tileweave {

struct TraceRequest {
  const std::string& title;
  const char* clock;      // "measured" or "modelled"
  const char* time_unit;  // "ns" or "ticks"
  std::int32_t num_sms;
  std::uint64_t dropped;
  /// Run of a node, where every run has nodes of its own: arrows stay within a run.
  std::function<std::int64_t(NodeId)> run_of = nullptr;
};

/// Records of several runs are matched run by run: the n-th record of a work belongs to run n.
Trace make_trace(const TraceRequest& request, std::vector<TileRecord> records,
                 const std::map<NodeId, const NodeSpec*>& nodes, const TensorTable& tensors);

}  // namespace tileweave

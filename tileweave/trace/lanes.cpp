#include "tileweave/trace/lanes.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace tileweave {

std::vector<std::uint32_t> ranks_of(const Trace& trace) {
  std::set<std::uint32_t> ranks;
  for (const TraceNode& node : trace.nodes) ranks.insert(node.rank);
  for (const TileRecord& record : trace.records) ranks.insert(record.rank);
  return {ranks.begin(), ranks.end()};
}

LaneLayout layout_lanes(const Trace& trace) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> records_of_sm;
  const std::uint32_t num_sms = num_sms_of(trace);
  for (const std::uint32_t rank : ranks_of(trace)) {
    for (std::uint32_t sm = 0; sm < num_sms; ++sm) records_of_sm[{rank, sm}];
  }
  for (std::size_t i = 0; i < trace.records.size(); ++i) {
    const TileRecord& record = trace.records[i];
    records_of_sm[{record.rank, record.sm}].push_back(static_cast<std::uint32_t>(i));
  }

  LaneLayout layout;
  layout.lane_of_record.resize(trace.records.size());
  for (auto& [sm, records] : records_of_sm) {
    const auto key = [&](std::uint32_t i) {
      const TileRecord& r = trace.records[i];
      return std::make_tuple(r.begin_ns, r.end_ns, r.node, r.work, i);
    };
    std::sort(records.begin(), records.end(),
              [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });

    // First fit by begin: needs exactly as many lanes as blocks were ever resident at once.
    const std::size_t first = layout.lanes.size();
    layout.lanes.push_back({.rank = sm.first, .sm = sm.second, .lane = 0, .records = {}});
    for (const std::uint32_t i : records) {
      std::size_t at = first;
      while (at < layout.lanes.size() && !layout.lanes[at].records.empty() &&
             trace.records[layout.lanes[at].records.back()].end_ns > trace.records[i].begin_ns) {
        ++at;
      }
      if (at == layout.lanes.size()) {
        layout.lanes.push_back({.rank = sm.first,
                                .sm = sm.second,
                                .lane = static_cast<std::uint32_t>(at - first),
                                .records = {}});
      }
      layout.lanes[at].records.push_back(i);
      layout.lane_of_record[i] = static_cast<std::uint32_t>(at);
    }
  }
  return layout;
}

}  // namespace tileweave

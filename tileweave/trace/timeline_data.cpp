#include <algorithm>
#include <string>

#include "tileweave/trace/json_writer.h"
#include "tileweave/trace/lanes.h"
#include "tileweave/trace/timeline_page.h"

namespace tileweave {
namespace {

// One array per field: half the bytes of one object per record.
template <typename Value>
void write_column(JsonWriter& json, std::string_view name, const Trace& trace, Value value) {
  json.line().key(name).begin_array();
  for (std::size_t i = 0; i < trace.records.size(); ++i) {
    json.integer(static_cast<std::int64_t>(value(i)));
  }
  json.end_array();
}

void write_records(JsonWriter& json, const Trace& trace, const LaneLayout& layout) {
  const std::vector<std::uint32_t> node_of = node_of_records(trace);
  const std::uint64_t start = run_span(trace).begin;
  const auto record = [&](std::size_t i) -> const TileRecord& { return trace.records[i]; };
  json.line().key("records").begin_object();
  write_column(json, "node", trace, [&](std::size_t i) { return node_of[i]; });
  write_column(json, "work", trace, [&](std::size_t i) { return record(i).work; });
  write_column(json, "lane", trace, [&](std::size_t i) { return layout.lane_of_record[i]; });
  write_column(json, "begin", trace, [&](std::size_t i) { return record(i).begin_ns - start; });
  write_column(json, "wait", trace,
               [&](std::size_t i) { return wait_span(record(i)).begin - start; });
  write_column(json, "ready", trace,
               [&](std::size_t i) { return wait_span(record(i)).end - start; });
  write_column(json, "signal", trace, [&](std::size_t i) {
    return record(i).signal_ns == 0 ? -1 : static_cast<std::int64_t>(record(i).signal_ns - start);
  });
  write_column(json, "end", trace, [&](std::size_t i) { return record(i).end_ns - start; });
  json.end_object();

  json.line().key("gave_up").begin_array();
  for (std::size_t i = 0; i < trace.records.size(); ++i) {
    if (record(i).wait_ns != 0 && record(i).ready_ns == 0) json.unsigned_integer(i);
  }
  json.end_array();
}

}  // namespace

std::string timeline_data(const Trace& trace, const NodeColors& colors, std::size_t max_arrows) {
  const LaneLayout layout = layout_lanes(trace);
  JsonWriter json;
  json.begin_object();
  json.key("unit").string(trace.time_unit);
  json.key("span").unsigned_integer(run_span(trace).duration());
  json.key("color_by").string(colors.operators_are_clearer ? "by_operator" : "by_node");
  json.key("ranks").begin_array();
  for (const std::uint32_t rank : ranks_of(trace)) json.unsigned_integer(rank);
  json.end_array();
  json.line().key("nodes").begin_array();
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) {
    const TraceNode& node = trace.nodes[i];
    json.line().begin_object().key("name").string(node.name).key("op").string(node.op);
    json.key("position").unsigned_integer(node.position).key("rank").unsigned_integer(node.rank);
    json.key("by_node").string(colors.by_node[i]);
    json.key("by_operator").string(colors.by_operator[i]).end_object();
  }
  json.end_array();
  json.line().key("lanes").begin_array();
  for (const TraceLane& lane : layout.lanes) {
    json.line().begin_object().key("rank").unsigned_integer(lane.rank);
    json.key("sm").unsigned_integer(lane.sm).key("lane").unsigned_integer(lane.lane);
    json.key("records").begin_array();
    for (const std::uint32_t record : lane.records) json.unsigned_integer(record);
    json.end_array().end_object();
  }
  json.end_array();
  write_records(json, trace, layout);
  json.line().key("tensors").begin_array();
  for (const std::string& tensor : trace.tensors) json.string(tensor);
  json.end_array();
  json.line().key("arrows").begin_array();  // from record, to record, tensor, tile
  for (std::size_t i = 0; i < std::min(trace.arrows.size(), max_arrows); ++i) {
    const TraceArrow& arrow = trace.arrows[i];
    json.unsigned_integer(arrow.from_record).unsigned_integer(arrow.to_record);
    json.unsigned_integer(arrow.tensor).unsigned_integer(arrow.tile);
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace tileweave

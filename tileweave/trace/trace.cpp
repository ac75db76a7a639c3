#include "tileweave/trace/trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

using NodeKey = std::pair<std::uint32_t, std::uint32_t>;  // (position, rank)

std::string say(std::string_view what, std::uint64_t value) {
  return std::string(what) + " " + std::to_string(value);
}

std::map<NodeKey, std::uint32_t> index_nodes(const Trace& trace) {
  std::map<NodeKey, std::uint32_t> index;
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) {
    const TraceNode& node = trace.nodes[i];
    const auto [where, is_new] =
        index.emplace(NodeKey{node.position, node.rank}, static_cast<std::uint32_t>(i));
    if (!is_new) {
      throw Error("read trace", "one node per position and rank",
                  say("position", node.position) + say(" on rank", node.rank) +
                      " twice: " + trace.nodes[where->second].name + " and " + node.name);
    }
  }
  return index;
}

void check_record(const Trace& trace, std::size_t i) {
  const TileRecord& r = trace.records[i];
  const auto refuse = [&](std::string expected, std::string got) {
    throw Error("read trace", std::move(expected) + " in " + say("record", i),
                std::move(got) + " (" + say("node", r.node) + say(", rank", r.rank) +
                    say(", kernel tile", r.work) + say(", SM", r.sm) + ")");
  };
  if (r.end_ns < r.begin_ns) {
    refuse("begin <= end", say("begin", r.begin_ns) + say(", end", r.end_ns));
  }
  const WaitSpan wait = wait_span(r);
  if (wait.begin < r.begin_ns || wait.end < wait.begin || wait.end > r.end_ns) {
    refuse("begin <= wait <= ready <= end", say("begin", r.begin_ns) + say(", wait", r.wait_ns) +
                                                say(", ready", r.ready_ns) +
                                                say(", end", r.end_ns));
  }
  if (r.signal_ns != 0 && (r.signal_ns < r.begin_ns || r.signal_ns > r.end_ns)) {
    refuse("begin <= signal <= end",
           say("begin", r.begin_ns) + say(", signal", r.signal_ns) + say(", end", r.end_ns));
  }
  const std::uint32_t limit =
      trace.num_sms > 0 ? static_cast<std::uint32_t>(trace.num_sms) : kMaxSms;
  if (r.sm >= limit) refuse(say("an SM below", limit), say("SM", r.sm));
}

}  // namespace

std::uint32_t Trace::tensor_id(std::string_view name) {
  const auto found = std::find(tensors.begin(), tensors.end(), name);
  if (found == tensors.end()) {
    tensors.emplace_back(name);
    return static_cast<std::uint32_t>(tensors.size() - 1);
  }
  return static_cast<std::uint32_t>(found - tensors.begin());
}

void Trace::add_arrow(std::size_t from_record, std::size_t to_record, std::uint32_t tensor,
                      std::uint64_t tile) {
  if (from_record >= records.size() || to_record >= records.size()) {
    throw Error("add arrow to trace", say("records below", records.size()),
                say("from record", from_record) + say(" to record", to_record));
  }
  if (tensor >= tensors.size()) {
    throw Error("add arrow to trace", say("a tensor below", tensors.size()), say("tensor", tensor));
  }
  arrows.push_back({.from_record = static_cast<std::uint32_t>(from_record),
                    .to_record = static_cast<std::uint32_t>(to_record),
                    .tensor = tensor,
                    .tile = tile});
}

std::uint64_t Trace::num_dropped() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : dropped) sum += count;
  return sum;
}

WaitSpan wait_span(const TileRecord& record) {
  if (record.ready_ns != 0) return {record.wait_ns, record.ready_ns};
  if (record.wait_ns != 0) return {record.wait_ns, record.end_ns};
  return {record.begin_ns, record.begin_ns};
}

RunSpan run_span(const Trace& trace) {
  if (trace.records.empty()) return {};
  RunSpan span{trace.records.front().begin_ns, trace.records.front().end_ns};
  for (const TileRecord& record : trace.records) {
    span.begin = std::min(span.begin, record.begin_ns);
    span.end = std::max(span.end, record.end_ns);
  }
  return span;
}

void check_trace(const Trace& trace) {
  if (trace.clock != "measured" && trace.clock != "modelled") {
    throw Error("read trace", "clock \"measured\" or \"modelled\"", "\"" + trace.clock + "\"");
  }
  if (trace.num_sms < 0 || trace.num_sms > static_cast<int>(kMaxSms)) {
    throw Error("read trace", say("num_sms in 0 ..", kMaxSms), std::to_string(trace.num_sms));
  }
  if (trace.records.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error("read trace", "fewer than 2^32 records", std::to_string(trace.records.size()));
  }
  for (std::size_t i = 0; i < trace.records.size(); ++i) check_record(trace, i);
  node_of_records(trace);
  for (std::size_t i = 0; i < trace.arrows.size(); ++i) {
    const TraceArrow& arrow = trace.arrows[i];
    if (arrow.from_record >= trace.records.size() || arrow.to_record >= trace.records.size() ||
        arrow.tensor >= trace.tensors.size()) {
      throw Error("read trace",
                  say("records below", trace.records.size()) +
                      say(" and a tensor below", trace.tensors.size()) + say(" in arrow", i),
                  say("from record", arrow.from_record) + say(" to record", arrow.to_record) +
                      say(", tensor", arrow.tensor));
    }
  }
  if (run_span(trace).duration() > kMaxRunSpan) {
    throw Error("read trace", say("a run of at most", kMaxRunSpan) + " " + trace.time_unit,
                std::to_string(run_span(trace).duration()));
  }
}

std::uint32_t num_sms_of(const Trace& trace) {
  if (trace.num_sms > 0) return static_cast<std::uint32_t>(trace.num_sms);
  std::uint32_t count = 0;
  for (const TileRecord& record : trace.records) count = std::max(count, record.sm + 1);
  return count;
}

std::vector<std::uint32_t> node_of_records(const Trace& trace) {
  const std::map<NodeKey, std::uint32_t> index = index_nodes(trace);
  std::vector<std::uint32_t> nodes;
  nodes.reserve(trace.records.size());
  for (std::size_t i = 0; i < trace.records.size(); ++i) {
    const TileRecord& record = trace.records[i];
    const auto found = index.find({record.node, record.rank});
    if (found == index.end()) {
      throw Error("read trace", say("a node for record", i),
                  say("no node at position", record.node) + say(" on rank", record.rank));
    }
    nodes.push_back(found->second);
  }
  return nodes;
}

}  // namespace tileweave

// A trace: the records of one run together with what they mean (nodes, clock, dependencies).
//
// Filled by a runtime after a run, then read by the exporters: write_perfetto, write_timeline_html,
// exposed_time. A Trace owns all it holds and is an ordinary value; nothing here is thread-safe.
// `check_trace` is called by every exporter and throws Error with the first thing that is wrong, so
// that no picture is ever drawn from records that contradict each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tileweave/trace/record.h"

namespace tileweave {

/// What a trace knows of a node of the plan. A record belongs to the node with its position and
/// rank.
struct TraceNode {
  std::string name;            // "layer 3 gate-up", any bytes: exporters escape it
  std::uint32_t position = 0;  // TileRecord::node
  std::uint32_t rank = 0;
  std::string op;  // kind of operator, e.g. "gemm": nodes of one kind are added up in reports
};

/// A data tile that `to_record` waited for and `from_record` wrote (indices into Trace::records).
struct TraceArrow {
  std::uint32_t from_record = 0;
  std::uint32_t to_record = 0;
  std::uint32_t tensor = 0;  // index into Trace::tensors
  std::uint64_t tile = 0;    // linear data tile
};

/// Whether SM 0 of rank 0 and SM 0 of rank 1 are two SMs or one.
enum class SmScope {
  kPerRank,  // every rank has a device of its own with num_sms SMs
  kShared,   // all ranks run on one device with num_sms SMs
};

struct Trace {
  std::string title;
  std::string clock;  // "measured" or "modelled"; no default, so nobody says it by accident
  std::string time_unit = "ns";  // "ns", or the name of a virtual clock's unit, e.g. "ticks"
  std::vector<TraceNode> nodes;
  std::vector<TileRecord> records;
  std::vector<std::string> tensors;    // names that arrows refer to
  std::vector<TraceArrow> arrows;      //
  std::vector<std::uint64_t> dropped;  // per ring buffer: records lost because it was full
  int num_sms = 0;                     // 0: unknown, taken from the records
  SmScope sm_scope = SmScope::kPerRank;

  /// Index of `name` in `tensors`, appended if it is new.
  std::uint32_t tensor_id(std::string_view name);

  /// Adds "`to_record` waited for tile `tile` of `tensor`, which `from_record` wrote".
  /// Throws Error if a record or the tensor does not exist.
  void add_arrow(std::size_t from_record, std::size_t to_record, std::uint32_t tensor,
                 std::uint64_t tile);

  /// Sum of `dropped`.
  std::uint64_t num_dropped() const;

  bool is_modelled() const { return clock == "modelled"; }
};

/// [wait begin, wait end) of a record, empty if it never waited. Both lie in [begin_ns, end_ns].
struct WaitSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t duration() const { return end - begin; }
};
WaitSpan wait_span(const TileRecord& record);

/// First begin and last end of all records; {0, 0} for an empty trace.
struct RunSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t duration() const { return end - begin; }
};
RunSpan run_span(const Trace& trace);

/// Longest run that can be shown: readers keep times relative to the run start in doubles.
inline constexpr std::uint64_t kMaxRunSpan = std::uint64_t{1} << 53;

/// More SMs than any device has: a larger index is a record that was never written.
inline constexpr std::uint32_t kMaxSms = 65536;

/// Throws Error, naming the record, node or arrow, unless: the clock is named; every record has a
/// node; begin <= wait <= ready <= end and begin <= signal <= end; SM indices are below num_sms and
/// kMaxSms; no (position, rank) occurs twice; arrows point at records and tensors; the run span is
/// at most kMaxRunSpan.
void check_trace(const Trace& trace);

/// SMs per rank: num_sms, or one more than the largest SM of the records where it is 0.
std::uint32_t num_sms_of(const Trace& trace);

/// For each record the index of its node in Trace::nodes. Throws Error if a record has none.
std::vector<std::uint32_t> node_of_records(const Trace& trace);

}  // namespace tileweave

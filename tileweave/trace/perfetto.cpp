#include "tileweave/trace/perfetto.h"

#include <algorithm>
#include <map>

#include "tileweave/core/atomic_file.h"
#include "tileweave/trace/duration.h"
#include "tileweave/trace/json_writer.h"
#include "tileweave/trace/lanes.h"

namespace tileweave {
namespace {

// Process and thread numbers never coincide: viewers take a thread numbered like its process for
// the process's main thread, and process 0 for the idle task.
class PerfettoExport {
 public:
  PerfettoExport(const Trace& trace, const PerfettoOptions& options)
      : trace_(trace),
        num_arrows_(std::min(trace.arrows.size(), options.max_arrows)),
        layout_(layout_lanes(trace)),
        node_of_(node_of_records(trace)),
        run_(run_span(trace)),
        units_per_us_(trace.time_unit == "ns" ? 1000 : 1) {
    for (const std::uint32_t rank : ranks_of(trace)) {
      process_of_rank_.emplace(rank, process_of_rank_.size() + 1);
    }
  }

  std::string write() {
    json_.begin_object();
    json_.key("displayTimeUnit").string("ns");
    write_metadata();
    json_.key("traceEvents").begin_array();
    write_names();
    for (const TraceLane& lane : layout_.lanes) {
      for (const std::uint32_t record : lane.records) write_block(record);
    }
    for (std::size_t i = 0; i < num_arrows_; ++i) write_flow(i);
    json_.end_array().end_object();
    return json_.take() + "\n";
  }

 private:
  std::uint64_t thread_of_lane(std::size_t lane) const {
    return process_of_rank_.size() + 1 + lane;
  }

  // Microseconds with all digits, made from integers: a double would round long runs.
  std::string microseconds(std::uint64_t units) const {
    std::string text = std::to_string(units / units_per_us_);
    if (units % units_per_us_ == 0) return text;
    const std::string digits = std::to_string(units_per_us_ + units % units_per_us_);
    text += "." + digits.substr(1);
    text.erase(text.find_last_not_of('0') + 1);
    return text;
  }
  std::string since_start(std::uint64_t time) const { return microseconds(time - run_.begin); }

  void write_metadata() {
    json_.line().key("otherData").begin_object();
    json_.key("title").string(trace_.title + " (" + trace_.clock + ")");
    json_.key("clock").string(trace_.clock);
    json_.key("time_unit").string(trace_.time_unit);
    json_.key("shown_as")
        .string(trace_.time_unit == "ns" ? "1 ns = 1 ns" : "1 " + trace_.time_unit + " = 1 us");
    json_.key("run_start").string(std::to_string(run_.begin));
    json_.key("dropped_records").string(std::to_string(trace_.num_dropped()));
    json_.key("omitted_arrows").string(std::to_string(trace_.arrows.size() - num_arrows_));
    json_.end_object();
  }

  void write_name(std::string_view what, std::uint64_t pid, std::uint64_t tid,
                  std::string_view name) {
    json_.line().begin_object();
    json_.key("ph").string("M").key("name").string(what);
    json_.key("pid").unsigned_integer(pid).key("tid").unsigned_integer(tid);
    json_.key("args").begin_object().key("name").string(name).end_object();
    json_.end_object();
  }

  void write_sort_index(std::string_view what, std::uint64_t pid, std::uint64_t tid,
                        std::uint64_t index) {
    json_.line().begin_object();
    json_.key("ph").string("M").key("name").string(what);
    json_.key("pid").unsigned_integer(pid).key("tid").unsigned_integer(tid);
    json_.key("args").begin_object().key("sort_index").unsigned_integer(index).end_object();
    json_.end_object();
  }

  void write_names() {
    for (const auto& [rank, pid] : process_of_rank_) {
      std::string name = trace_.title + ": rank " + std::to_string(rank) + " (" + trace_.clock;
      if (trace_.time_unit != "ns") name += ", 1 " + trace_.time_unit + " shown as 1 us";
      name += ")";
      if (trace_.num_dropped() > 0) {
        name += ", INCOMPLETE: " + format_count(trace_.num_dropped()) + " records lost";
      }
      if (num_arrows_ < trace_.arrows.size()) {
        name += ", " + format_count(trace_.arrows.size() - num_arrows_) + " arrows left out";
      }
      write_name("process_name", pid, 0, name);
      write_sort_index("process_sort_index", pid, 0, pid);
    }
    for (std::size_t i = 0; i < layout_.lanes.size(); ++i) {
      const TraceLane& lane = layout_.lanes[i];
      std::string name = "SM " + std::to_string(lane.sm);
      if (lane.lane > 0) name += " lane " + std::to_string(lane.lane);
      const std::uint64_t pid = process_of_rank_.at(lane.rank);
      write_name("thread_name", pid, thread_of_lane(i), name);
      write_sort_index("thread_sort_index", pid, thread_of_lane(i), i);
    }
  }

  void begin_slice(std::string_view name, std::string_view category, std::uint32_t record,
                   std::uint64_t begin, std::uint64_t end) {
    json_.line().begin_object();
    json_.key("ph").string("X").key("name").string(name).key("cat").string(category);
    write_place(record);
    json_.key("ts").raw(since_start(begin));
    json_.key("dur").raw(microseconds(end - begin));
  }

  void write_place(std::uint32_t record) {
    json_.key("pid").unsigned_integer(process_of_rank_.at(trace_.records[record].rank));
    json_.key("tid").unsigned_integer(thread_of_lane(layout_.lane_of_record[record]));
  }

  void write_block(std::uint32_t i) {
    const TileRecord& record = trace_.records[i];
    const TraceNode& node = trace_.nodes[node_of_[i]];
    begin_slice(node.name + " #" + std::to_string(record.work), "block", i, record.begin_ns,
                record.end_ns);
    json_.key("args").begin_object();
    json_.key("node").string(node.name);
    json_.key("operator").string(node.op);
    json_.key("position").unsigned_integer(node.position);
    json_.key("kernel_tile").unsigned_integer(record.work);
    json_.key("record").unsigned_integer(i);
    if (record.signal_ns != 0) {
      json_.key("signal_us").raw(since_start(record.signal_ns));
    }
    json_.end_object().end_object();

    // Empty parts are left out: a slice of no length would only shadow its neighbours.
    const auto write_part = [&](const char* name, std::uint64_t begin, std::uint64_t end) {
      if (begin == end) return;
      begin_slice(name, "part", i, begin, end);
      json_.end_object();
    };
    const WaitSpan wait = wait_span(record);
    if (wait.duration() > 0) write_part("prologue", record.begin_ns, wait.begin);
    write_part("wait", wait.begin, wait.end);
    write_part("compute", wait.duration() > 0 ? wait.end : record.begin_ns, record.end_ns);
  }

  // A flow end belongs to the slice that is open at its time, and a slice is closed at its end: a
  // block that signals as its last act would lose its arrow without the step back.
  std::string inside(std::uint64_t time, const TileRecord& record) const {
    if (time < record.end_ns || record.end_ns == record.begin_ns) {
      return since_start(std::min(time, record.end_ns));
    }
    if (units_per_us_ > 1) return since_start(record.end_ns - 1);
    return std::to_string(record.end_ns - 1 - run_.begin) + ".999";
  }

  void write_flow(std::size_t i) {
    const TraceArrow& arrow = trace_.arrows[i];
    const TileRecord& from = trace_.records[arrow.from_record];
    const TileRecord& to = trace_.records[arrow.to_record];
    const auto write_end = [&](const char* phase, std::uint32_t record, const std::string& ts) {
      json_.line().begin_object();
      json_.key("ph").string(phase);
      if (*phase == 'f') json_.key("bp").string("e");
      json_.key("name").string(trace_.tensors[arrow.tensor]).key("cat").string("tile");
      json_.key("id").unsigned_integer(i);
      write_place(record);
      json_.key("ts").raw(ts);
      json_.key("args").begin_object().key("tile").unsigned_integer(arrow.tile).end_object();
      json_.end_object();
    };
    write_end("s", arrow.from_record,
              inside(from.signal_ns != 0 ? from.signal_ns : from.end_ns, from));
    write_end("f", arrow.to_record, inside(wait_span(to).end, to));
  }

  const Trace& trace_;
  const std::size_t num_arrows_;
  const LaneLayout layout_;
  const std::vector<std::uint32_t> node_of_;
  const RunSpan run_;
  const std::uint64_t units_per_us_;
  std::map<std::uint32_t, std::uint64_t> process_of_rank_;
  JsonWriter json_;
};

}  // namespace

std::string perfetto_json(const Trace& trace, const PerfettoOptions& options) {
  check_trace(trace);
  return PerfettoExport(trace, options).write();
}

void write_perfetto(const Trace& trace, const std::string& path, const PerfettoOptions& options) {
  write_file_atomically(path, perfetto_json(trace, options));
}

}  // namespace tileweave

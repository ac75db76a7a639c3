#include <algorithm>
#include <string>
#include <vector>

#include "tileweave/trace/duration.h"
#include "tileweave/trace/escape.h"
#include "tileweave/trace/exposed_time.h"

namespace tileweave {
namespace {

using Row = std::vector<std::string>;

// Columns as wide as their widest cell; the first `num_left` are aligned left, the rest right.
std::string align(const std::vector<Row>& rows, std::size_t num_left) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], num_code_points(row[c]));
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = " ";
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string pad(widths[c] - num_code_points(row[c]), ' ');
      line += " " + (c < num_left ? row[c] + pad : pad + row[c]) + (c + 1 < row.size() ? " " : "");
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string exposed_time_table(const Trace& trace) {
  const ExposedTime times = exposed_time(trace);
  const auto duration = [&](std::uint64_t value) {
    return format_duration(value, trace.time_unit);
  };
  const auto share_of = [](std::uint64_t part, std::uint64_t whole) {
    return format_share(static_cast<double>(part), static_cast<double>(whole));
  };

  std::string text = printable(trace.title) + " (" + trace.clock + "): makespan " +
                     duration(times.makespan) + ", " + format_count(times.sm_time.num_sms) +
                     " SMs: " + share_of(times.sm_time.computing, times.sm_time.total()) +
                     " computing, " + share_of(times.sm_time.waiting, times.sm_time.total()) +
                     " waiting, " + share_of(times.sm_time.idle, times.sm_time.total()) + " idle\n";
  if (trace.num_dropped() > 0) {
    text += "INCOMPLETE: " + format_count(trace.num_dropped()) +
            " records were lost because a ring buffer was full\n";
  }
  for (const RankTime& rank : times.ranks) {
    if (times.ranks.size() > 1) {
      text += "rank " + std::to_string(rank.rank) + ": makespan " + duration(rank.makespan) + "\n";
    }
    std::vector<Row> rows = {
        {"operator", "nodes", "blocks", "exposed", "share", "waiting", "busy"}};
    for (const OperatorTime& op : rank.operators) {
      rows.push_back({printable(op.op), format_count(op.nodes), format_count(op.tiles),
                      duration(op.exposed), share_of(op.exposed, rank.makespan),
                      duration(op.waiting), duration(op.busy)});
    }
    text += align(rows, 1);
    rows = {
        {"node", "operator", "blocks", "exposed", "share", "waiting", "busy", "start", "finish"}};
    for (const NodeTime& node : rank.nodes) {
      rows.push_back({printable(trace.nodes[node.node].name), printable(trace.nodes[node.node].op),
                      format_count(node.tiles), duration(node.exposed),
                      share_of(node.exposed, rank.makespan), duration(node.waiting),
                      duration(node.busy), duration(node.start), duration(node.finish)});
    }
    text += align(rows, 2);
  }
  return text;
}

}  // namespace tileweave

#include "tileweave/trace/exposed_time.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "tileweave/trace/lanes.h"

namespace tileweave {
namespace {

struct Interval {
  std::uint64_t begin;
  std::uint64_t end;
};

std::uint64_t covered(std::vector<Interval>& intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::uint64_t sum = 0;
  std::uint64_t reached = 0;
  for (const Interval& interval : intervals) {
    const std::uint64_t begin = std::max(interval.begin, reached);
    if (interval.end > begin) sum += interval.end - begin;
    reached = std::max(reached, interval.end);
  }
  return sum;
}

SmTime sm_time_of(const Trace& trace, std::uint64_t makespan) {
  const bool is_shared = trace.sm_scope == SmScope::kShared;
  using SmKey = std::pair<std::uint32_t, std::uint32_t>;  // (rank, SM)
  std::map<SmKey, std::vector<Interval>> resident;
  std::map<SmKey, std::vector<Interval>> computing;
  for (const TileRecord& record : trace.records) {
    const SmKey sm{is_shared ? 0 : record.rank, record.sm};
    const WaitSpan wait = wait_span(record);
    resident[sm].push_back({record.begin_ns, record.end_ns});
    computing[sm].push_back({record.begin_ns, wait.begin});
    computing[sm].push_back({wait.end, record.end_ns});
  }
  std::uint64_t resident_time = 0;
  SmTime time;
  for (auto& [sm, intervals] : resident) resident_time += covered(intervals);
  for (auto& [sm, intervals] : computing) time.computing += covered(intervals);
  time.num_sms = num_sms_of(trace) * (is_shared ? 1 : ranks_of(trace).size());
  time.waiting = resident_time - time.computing;
  time.idle = time.num_sms * makespan - resident_time;
  return time;
}

void attribute_exposed_time(const Trace& trace, RankTime& rank) {
  std::vector<NodeTime*> by_finish;
  for (NodeTime& node : rank.nodes) {
    if (node.tiles > 0) by_finish.push_back(&node);
  }
  std::sort(by_finish.begin(), by_finish.end(), [&](const NodeTime* a, const NodeTime* b) {
    return std::make_tuple(a->finish, trace.nodes[a->node].position) <
           std::make_tuple(b->finish, trace.nodes[b->node].position);
  });
  for (NodeTime* node : by_finish) {
    node->exposed = node->finish - rank.makespan;
    rank.makespan = node->finish;
  }
}

std::vector<OperatorTime> add_up_operators(const Trace& trace, const std::vector<NodeTime>& nodes) {
  std::map<std::string, OperatorTime> operators;
  for (const NodeTime& node : nodes) {
    OperatorTime& sum = operators[trace.nodes[node.node].op];
    sum.nodes += 1;
    sum.tiles += node.tiles;
    sum.exposed += node.exposed;
    sum.waiting += node.waiting;
    sum.busy += node.busy;
  }
  std::vector<OperatorTime> sorted;
  for (auto& [op, sum] : operators) {
    sorted.push_back(std::move(sum));
    sorted.back().op = op;
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const OperatorTime& a, const OperatorTime& b) {
    return a.exposed > b.exposed;
  });
  return sorted;
}

}  // namespace

ExposedTime exposed_time(const Trace& trace) {
  check_trace(trace);
  ExposedTime result;
  const RunSpan run = run_span(trace);
  result.run_start = run.begin;
  result.makespan = run.duration();

  std::vector<NodeTime> nodes(trace.nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].node = static_cast<std::uint32_t>(i);
  const std::vector<std::uint32_t> node_of = node_of_records(trace);
  for (std::size_t i = 0; i < trace.records.size(); ++i) {
    const TileRecord& record = trace.records[i];
    NodeTime& node = nodes[node_of[i]];
    const std::uint64_t begin = record.begin_ns - run.begin;
    node.start = node.tiles == 0 ? begin : std::min(node.start, begin);
    node.finish = std::max(node.finish, record.end_ns - run.begin);
    node.tiles += 1;
    node.waiting += wait_span(record).duration();
    node.busy += record.end_ns - record.begin_ns - wait_span(record).duration();
  }

  for (const std::uint32_t rank : ranks_of(trace)) {
    RankTime time{.rank = rank, .makespan = 0, .nodes = {}, .operators = {}};
    for (const NodeTime& node : nodes) {
      if (trace.nodes[node.node].rank == rank) time.nodes.push_back(node);
    }
    std::sort(time.nodes.begin(), time.nodes.end(), [&](const NodeTime& a, const NodeTime& b) {
      return trace.nodes[a.node].position < trace.nodes[b.node].position;
    });
    attribute_exposed_time(trace, time);
    time.operators = add_up_operators(trace, time.nodes);
    result.ranks.push_back(std::move(time));
  }
  result.sm_time = sm_time_of(trace, result.makespan);
  return result;
}

}  // namespace tileweave

// EventGraph: the events of a scheduled plan and which must precede which, by plain closure.
//
// The oracle for HappensBefore and for whatever is built on it.
#pragma once

#include <cstdint>
#include <vector>

#include "tileweave/plan/plan.h"
#include "tileweave/plan/verdict.h"
#include "tileweave/plan/work_graph.h"

namespace tileweave::testing {

/// What must precede what, event by event: blocks begin, works pass their waits and signal, nodes
/// complete. Knows only the words of the schedule and the arrivals of tiles.
class EventGraph {
 public:
  EventGraph(const Plan& plan, const Schedule& schedule) : plan_(plan), works_(plan) {
    for (std::size_t n = 0; n < plan.nodes().size(); ++n) {
      const NodeSpec& spec = plan.nodes()[n];
      works_.add(static_cast<NodeId>(n));
      first_.push_back(num_events_);
      num_events_ += blocks_of(spec) + 2 * spec.num_works + 2;
    }
    before_.resize(static_cast<std::size_t>(num_events_),
                   std::vector<bool>(static_cast<std::size_t>(num_events_), false));
    for (std::size_t n = 0; n < plan.nodes().size(); ++n) {
      add(static_cast<NodeId>(n), schedule.nodes[n], schedule);
    }
    // Events are not numbered in their order: close transitively.
    for (std::size_t k = 0; k < before_.size(); ++k) {
      for (auto& row : before_) {
        if (!row[k]) continue;
        for (std::size_t j = 0; j < row.size(); ++j) row[j] = row[j] || before_[k][j];
      }
    }
  }

  std::int64_t begin(NodeId n, std::int64_t block) const { return at(n) + block; }
  std::int64_t pass(NodeId n, std::int64_t work) const { return at(n) + blocks(n) + work; }
  std::int64_t signal(NodeId n, std::int64_t work) const {
    return at(n) + blocks(n) + works(n) + work;
  }
  std::int64_t end(NodeId n) const { return at(n) + blocks(n) + 2 * works(n); }
  /// All that its blocks have to wait for has come.
  std::int64_t release(NodeId n) const { return end(n) + 1; }
  bool precedes(std::int64_t a, std::int64_t b) const {
    return before_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  }

  bool complete(NodeId i, NodeId j) const {
    return each(blocks(j), [&](std::int64_t b) { return precedes(end(i), begin(j, b)); });
  }
  bool done(NodeId i, NodeId j) const {
    return each(works(i), [&](std::int64_t x) {
      return each(blocks(j), [&](std::int64_t b) { return precedes(signal(i, x), begin(j, b)); });
    });
  }
  bool begun(NodeId i, NodeId j) const {
    return each(blocks(i), [&](std::int64_t a) {
      return each(blocks(j), [&](std::int64_t b) { return precedes(begin(i, a), begin(j, b)); });
    });
  }
  bool covered(NodeId i, NodeId j) const {
    return each(works(i), [&](std::int64_t x) {
      return !each(works(j), [&](std::int64_t w) { return !precedes(signal(i, x), pass(j, w)); });
    });
  }
  bool ordered(NodeId i, NodeId j) const {
    return each(works(i), [&](std::int64_t x) {
      return each(works(j), [&](std::int64_t w) { return precedes(signal(i, x), pass(j, w)); });
    });
  }

 private:
  template <class Holds>
  static bool each(std::int64_t count, const Holds& holds) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (!holds(i)) return false;
    }
    return true;
  }
  std::int64_t at(NodeId n) const { return first_[static_cast<std::size_t>(n)]; }
  const NodeSpec& spec(NodeId n) const { return plan_.nodes()[static_cast<std::size_t>(n)]; }
  std::int64_t blocks(NodeId n) const { return blocks_of(spec(n)); }
  std::int64_t works(NodeId n) const { return spec(n).num_works; }
  void edge(std::int64_t a, std::int64_t b) {
    before_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = true;
  }

  void add(NodeId n, const ScheduledNode& node, const Schedule& schedule) {
    for (std::int64_t b = 0; b < blocks(n); ++b) {
      std::int64_t last = begin(n, b);
      for (std::int64_t w = b; w < works(n); w += blocks(n)) {
        edge(last, pass(n, w));
        edge(pass(n, w), signal(n, w));
        last = signal(n, w);
      }
      edge(last, end(n));
    }
    for (std::int64_t w = 0; w < works(n); ++w) {
      for (const TileRef& tile : works_.waits({n, w})) {
        for (const WorkRef& arrival : works_.arrivals(tile)) {
          if (arrival.node < n) edge(signal(arrival.node, arrival.work), pass(n, w));
        }
      }
    }
    NodeId stream_pred = -1;
    for (NodeId k = 0; k < n; ++k) {
      if (spec(k).rank == spec(n).rank &&
          schedule.nodes[static_cast<std::size_t>(k)].stream == node.stream) {
        stream_pred = k;
      }
    }
    for (std::int64_t b = 0; b < blocks(n); ++b) edge(release(n), begin(n, b));
    for (const Dependency& dependency : node.after) {
      const NodeId on = dependency.on;
      if (dependency.release == Release::kCompleted) edge(end(on), release(n));
      if (dependency.release == Release::kFirstBegun) edge(release(on), release(n));
      const bool all_begun =
          dependency.release == Release::kAllBegun || dependency.release == Release::kProgrammatic;
      for (std::int64_t a = 0; all_begun && a < blocks(on); ++a) edge(begin(on, a), release(n));
      if (dependency.release != Release::kProgrammatic) continue;
      if (stream_pred == on) stream_pred = -1;
      edge(end(on), end(n));
      for (std::int64_t w = 0; w < works(n); ++w) edge(end(on), pass(n, w));
    }
    if (stream_pred >= 0) edge(end(stream_pred), release(n));
  }

  const Plan& plan_;
  WorkGraph works_;
  std::vector<std::int64_t> first_;
  std::int64_t num_events_ = 0;
  std::vector<std::vector<bool>> before_;
};

}  // namespace tileweave::testing

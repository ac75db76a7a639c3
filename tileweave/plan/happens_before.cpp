#include "tileweave/plan/happens_before.h"

namespace tileweave {
namespace {

/// True when "all works are done" implies "all blocks have begun": a block without works, or works
/// claimed by other blocks, would break it.
bool every_block_works(const NodeSpec& node) {
  return blocks_of(node) <= node.num_works && node.counter.arrivals.empty();
}

/// The node before `id` on its stream, or -1.
template <class Rows>
NodeId before_on_stream(const Rows& rows, NodeId id) {
  const auto& own = rows[static_cast<std::size_t>(id)];
  for (NodeId k = id - 1; k >= 0; --k) {
    const auto& other = rows[static_cast<std::size_t>(k)];
    if (other.rank == own.rank && other.stream == own.stream) return k;
  }
  return -1;
}

}  // namespace

void NodeSet::insert(NodeId id) {
  const auto word = static_cast<std::size_t>(id) / 64;
  if (word >= words_.size()) words_.resize(word + 1, 0);
  words_[word] |= std::uint64_t{1} << (static_cast<unsigned>(id) % 64U);
}

void NodeSet::insert_all(const NodeSet& other) {
  if (other.words_.size() > words_.size()) words_.resize(other.words_.size(), 0);
  for (std::size_t w = 0; w < other.words_.size(); ++w) words_[w] |= other.words_[w];
}

HappensBefore::HappensBefore(const Plan& plan) : plan_(&plan), works_(plan) {}

HappensBefore::HappensBefore(const Plan& plan, const Schedule& schedule) : HappensBefore(plan) {
  for (std::size_t n = 0; n < schedule.nodes.size(); ++n) {
    relate(static_cast<NodeId>(n), schedule.nodes[n]);
  }
}

void HappensBefore::after_completion(NodeId k, Before& row) const {
  const Before& other = at(k);
  row.complete.insert_all(other.complete_after);
  row.done.insert(k);
  row.done.insert_all(other.covered);
  row.begun.insert(k);
  row.begun.insert_all(other.begun);
  row.trusted_begun.insert_all(other.trusted_begun);
}

void HappensBefore::after_begin(NodeId k, Before& row) const {
  before_begin(k, row);
  row.begun.insert(k);
}

/// Everything that precedes any block of `k`.
void HappensBefore::before_begin(NodeId k, Before& row) const {
  const Before& other = at(k);
  row.complete.insert_all(other.complete);
  row.done.insert_all(other.done);
  row.begun.insert_all(other.begun);
  row.trusted_begun.insert_all(other.trusted_begun);
}

void HappensBefore::relate(NodeId id, const ScheduledNode& node) {
  const auto index = static_cast<std::size_t>(id);
  if (index == before_.size()) {
    before_.emplace_back();
    works_.add(id);
  }
  Before row;
  row.rank = plan_->nodes()[index].rank;
  row.stream = node.stream;
  before_[index] = row;

  NodeId grid_wait = -1;
  for (const Dependency& dependency : node.after) {
    switch (dependency.release) {
      case Release::kCompleted:
        after_completion(dependency.on, row);
        break;
      case Release::kProgrammatic:
        grid_wait = dependency.on;
        after_begin(dependency.on, row);
        break;
      case Release::kAllBegun:
        after_begin(dependency.on, row);
        break;
      case Release::kFirstBegun:
        // One block has begun: what comes before every block of that node has come.
        before_begin(dependency.on, row);
        [[fallthrough]];
      case Release::kLaunchCompleted:
        row.trusted_begun.insert(dependency.on);
        row.trusted_begun.insert_all(at(dependency.on).trusted_begun);
        break;
    }
  }
  const NodeId stream_pred = before_on_stream(before_, id);
  if (stream_pred >= 0 && stream_pred != grid_wait) after_completion(stream_pred, row);

  // What is complete is done; what is done has begun, where every block has works.
  row.done.insert_all(row.complete);
  row.begun.insert_all(row.complete);
  for (NodeId k = 0; k < id; ++k) {
    if (row.done.has(k) && every_block_works(plan_->nodes()[static_cast<std::size_t>(k)])) {
      row.begun.insert(k);
    }
  }
  row.trusted_begun.insert_all(row.begun);

  row.covered = row.done;
  row.ordered = row.done;
  for (const WorkGraph::Producer& producer : works_.producers(id)) {
    const Before& other = at(producer.node);
    if (producer.every_work_waited_for) {
      row.covered.insert(producer.node);
      row.covered.insert_all(other.covered);
    }
    if (producer.every_work_waits) row.ordered.insert_all(other.ordered);
    if (producer.all_for_all) {
      row.ordered.insert(producer.node);
      row.ordered.insert_all(other.covered);
    }
  }
  row.complete_after = row.complete;
  row.complete_after.insert(id);
  if (grid_wait >= 0) {
    // Every block waits until the predecessor is complete before it signals, or returns.
    const Before& other = at(grid_wait);
    row.covered.insert(grid_wait);
    row.covered.insert_all(other.covered);
    row.ordered.insert(grid_wait);
    row.ordered.insert_all(other.covered);
    row.ordered.insert_all(other.ordered);
    row.complete_after.insert_all(other.complete_after);
  }
  before_[index] = std::move(row);
}

}  // namespace tileweave

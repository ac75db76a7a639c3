#include "tileweave/moe/planner/chain_moves.h"

#include <algorithm>

namespace tileweave {
namespace {

constexpr std::int32_t kNone = -1;

class Chains {
 public:
  Chains(std::int32_t fair_share, const Placement& placement, std::int32_t* rank_scratch)
      : fair_share_(fair_share),
        at_(placement),
        queue_(rank_scratch),
        giver_(rank_scratch + placement.shape.num_ranks),
        expert_(rank_scratch + 2 * placement.shape.num_ranks) {}

  /// One chain from the most loaded rank that has one.
  bool move_once() const {
    for (std::int32_t load = at_.max_load(); load > fair_share_; load = next_load(load)) {
      for (std::int32_t g = 0; g < at_.shape.num_ranks; ++g) {
        if (at_.load[g] != load) continue;
        const std::int32_t end = find(g);
        if (end == kNone) continue;
        shift(g, end);
        return true;
      }
    }
    return false;
  }

 private:
  /// The next smaller load of a rank.
  std::int32_t next_load(std::int32_t load) const {
    std::int32_t next = 0;
    for (std::int32_t g = 0; g < at_.shape.num_ranks; ++g) {
      if (at_.load[g] < load) next = std::max(next, at_.load[g]);
    }
    return next;
  }

  /// Breadth first from `start` to a rank with room; leaves giver_ and expert_ along the chain.
  std::int32_t find(std::int32_t start) const {
    for (std::int32_t g = 0; g < at_.shape.num_ranks; ++g) giver_[g] = kNone;
    giver_[start] = start;
    queue_[0] = start;
    std::int32_t count = 1;
    for (std::int32_t i = 0; i < count; ++i) {
      find_gifts(queue_[i]);
      for (std::int32_t to = 0; to < at_.shape.num_ranks; ++to) {
        if (giver_[to] != kNone || expert_[to] == kNone) continue;
        giver_[to] = queue_[i];
        if (at_.load[to] < fair_share_) return to;
        queue_[count++] = to;
      }
    }
    return kNone;
  }

  /// What `from` can give, into expert_ of each rank not reached yet: of the experts that this rank
  /// has the weights of, else, if it has a free slot, of all, the one with the most blocks, lowest
  /// id. kNone: nothing.
  void find_gifts(std::int32_t from) const {
    const std::int32_t ranks = at_.shape.num_ranks;
    for (std::int32_t to = 0; to < ranks; ++to) {
      if (giver_[to] == kNone) expert_[to] = kNone;
    }
    std::int32_t hottest = kNone;
    for (std::int32_t owner = 0; owner < ranks; ++owner) {
      const std::int32_t first = at_.shape.first_owned(owner);
      for (std::int32_t e = first; e < first + at_.shape.num_owned(owner); ++e) {
        const std::int32_t* blocks = at_.row(e);
        if (blocks[from] == 0) continue;
        if (hottest == kNone || blocks[from] > at_.of(hottest, from)) hottest = e;
        for (std::int32_t to = 0; to < ranks; ++to) {
          if (giver_[to] != kNone || (blocks[to] == 0 && to != owner)) continue;
          const std::int32_t best = expert_[to];
          if (best == kNone || blocks[from] > at_.of(best, from)) expert_[to] = e;
        }
      }
    }
    for (std::int32_t to = 0; to < ranks; ++to) {
      const bool has_slot = at_.replicas[to] < at_.shape.num_slots;
      if (giver_[to] == kNone && expert_[to] == kNone && has_slot) expert_[to] = hottest;
    }
  }

  void shift(std::int32_t start, std::int32_t end) const {
    std::int32_t blocks = std::min(at_.load[start] - fair_share_, fair_share_ - at_.load[end]);
    for (std::int32_t g = end; g != start; g = giver_[g]) {
      blocks = std::min(blocks, at_.of(expert_[g], giver_[g]));
    }
    for (std::int32_t g = end; g != start; g = giver_[g]) {
      at_.move(expert_[g], giver_[g], g, blocks);
    }
  }

  const std::int32_t fair_share_;
  const Placement at_;
  std::int32_t* queue_;
  std::int32_t* giver_;
  std::int32_t* expert_;
};

}  // namespace

void chain_moves(std::int32_t fair_share, const Placement& placement, std::int32_t* rank_scratch) {
  const Chains chains(fair_share, placement, rank_scratch);
  for (std::int32_t i = 0; i < 4 * placement.shape.num_ranks; ++i) {
    if (!chains.move_once()) return;
  }
}

}  // namespace tileweave

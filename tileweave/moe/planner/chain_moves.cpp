#include "tileweave/moe/planner/chain_moves.h"

#include <algorithm>

namespace tileweave {
namespace {

constexpr std::int32_t kNone = -1;

/// What `from` can give to `to`: an expert that `to` has the weights of, else, if it has a free
/// slot, any; of these the one with the most blocks, lowest id. kNone: nothing.
std::int32_t gift(const Placement& at, std::int32_t from, std::int32_t to) {
  const std::int32_t first = at.shape.first_owned(to), end = first + at.shape.num_owned(to);
  std::int32_t held = kNone, any = kNone;
  for (std::int32_t e = 0; e < at.shape.num_experts; ++e) {
    const std::int32_t blocks = at.of(e, from);
    if (blocks == 0) continue;
    const bool has_weights = at.of(e, to) > 0 || (e >= first && e < end);
    std::int32_t& best = has_weights ? held : any;
    if (best == kNone || blocks > at.of(best, from)) best = e;
  }
  if (held != kNone) return held;
  return at.replicas[to] < at.shape.num_slots ? any : kNone;
}

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
      for (std::int32_t to = 0; to < at_.shape.num_ranks; ++to) {
        if (giver_[to] != kNone) continue;
        const std::int32_t expert = gift(at_, queue_[i], to);
        if (expert == kNone) continue;
        giver_[to] = queue_[i];
        expert_[to] = expert;
        if (at_.load[to] < fair_share_) return to;
        queue_[count++] = to;
      }
    }
    return kNone;
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

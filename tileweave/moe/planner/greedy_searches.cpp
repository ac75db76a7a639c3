#include "tileweave/moe/planner/greedy_searches.h"

#include <algorithm>

namespace tileweave {
namespace {

constexpr std::int32_t kNone = -1;

class Search {
 public:
  Search(const GreedySearch& search, std::int32_t fair_share, const Placement& placement,
         std::int32_t* rank_scratch)
      : search_(search),
        fair_share_(fair_share),
        at_(placement),
        order_(rank_scratch),
        key_(rank_scratch + placement.shape.num_ranks) {}

  void run() {
    for (std::int32_t round = 0; round < at_.shape.num_slots + 2; ++round) {
      if (!run_round()) return;
    }
  }

 private:
  bool run_round() {
    bool moved = false;
    const std::int32_t num_donors = order_donors();
    for (std::int32_t i = 0; i < num_donors; ++i) moved |= give(order_[i]);
    return moved;
  }

  /// Donors of this round into order_, by insertion: there are few of them.
  std::int32_t order_donors() {
    std::int32_t count = 0;
    for (std::int32_t g = 0; g < at_.shape.num_ranks; ++g) {
      if (at_.load[g] <= fair_share_) continue;
      const std::int32_t key =
          search_.priority == DonorPriority::kLoad ? at_.load[g] : most_blocks(g);
      std::int32_t place = count++;
      for (; place > 0 && key_[place - 1] < key; --place) {
        key_[place] = key_[place - 1];
        order_[place] = order_[place - 1];
      }
      key_[place] = key;
      order_[place] = g;
    }
    return count;
  }

  std::int32_t most_blocks(std::int32_t rank) const {
    std::int32_t most = 0;
    const std::int32_t first = at_.shape.first_owned(rank);
    for (std::int32_t i = 0; i < at_.shape.num_owned(rank); ++i) {
      most = std::max(most, at_.of(first + i, rank));
    }
    return most;
  }

  /// A donor's blocks are those of its own experts: who receives stays at or below the fair share.
  bool give(std::int32_t donor) {
    bool moved = false;
    // Each transfer fills a receiver, ends the donor's excess or uses up an expert.
    const std::int32_t most = at_.shape.num_ranks + at_.shape.num_owned(donor);
    for (std::int32_t i = 0; i < most && at_.load[donor] > fair_share_; ++i) {
      if (!give_once(donor)) break;
      moved = true;
      if (search_.fan_out == FanOut::kOneCopy) break;
    }
    return moved;
  }

  bool give_once(std::int32_t donor) {
    if (most_room(/*of=*/kNone) == kNone) return false;  // nobody is below the fair share
    const bool has_free_slot = has_room_for_a_replica();
    if (!has_free_slot && at_.exported[donor] == 0) return false;
    std::int32_t expert = kNone;
    for (std::int32_t i = 0; i < at_.shape.num_owned(donor); ++i) {
      expert = has_free_slot ? hottest_after(donor, expert) : hottest_with_holder(donor);
      if (expert == kNone) return false;
      std::int32_t to = most_room(expert);
      if (to == kNone) to = fresh_receiver(expert);
      if (to == kNone) continue;
      at_.move(expert, donor, to,
               std::min({at_.of(expert, donor), fair_share_ - at_.load[to],
                         at_.load[donor] - fair_share_}));
      return true;
    }
    return false;
  }

  bool has_room_for_a_replica() const {
    for (std::int32_t g = 0; g < at_.shape.num_ranks; ++g) {
      if (at_.load[g] < fair_share_ && at_.replicas[g] < at_.shape.num_slots) return true;
    }
    return false;
  }

  /// The first in that order that somebody with a replica can take more of; kNone: none.
  std::int32_t hottest_with_holder(std::int32_t donor) const {
    const std::int32_t first = at_.shape.first_owned(donor);
    std::int32_t best = kNone, most = 0;
    for (std::int32_t e = first; e < first + at_.shape.num_owned(donor); ++e) {
      if (at_.of(e, donor) > most && most_room(e) != kNone) most = at_.of(e, donor), best = e;
    }
    return best;
  }

  /// The donor's expert that follows `last` in order of blocks left, then id; kNone: no more.
  std::int32_t hottest_after(std::int32_t donor, std::int32_t last) const {
    const std::int32_t first = at_.shape.first_owned(donor);
    const std::int32_t bound = last == kNone ? 0 : at_.of(last, donor);
    std::int32_t best = kNone, most = 0;
    for (std::int32_t e = first; e < first + at_.shape.num_owned(donor); ++e) {
      const std::int32_t blocks = at_.of(e, donor);
      const bool follows = last == kNone || blocks < bound || (blocks == bound && e > last);
      if (follows && blocks > most) most = blocks, best = e;
    }
    return best;
  }

  /// The least loaded rank below the fair share, among those with a replica of `of` unless kNone.
  std::int32_t most_room(std::int32_t of) const {
    std::int32_t best = kNone, least = fair_share_;
    for (std::int32_t g = 0; g < at_.shape.num_ranks; ++g) {
      if (of != kNone && at_.of(of, g) == 0) continue;
      if (at_.load[g] < least) least = at_.load[g], best = g;
    }
    return best;
  }

  std::int32_t fresh_receiver(std::int32_t expert) const {
    std::int32_t best = kNone, least = fair_share_;
    for (std::int32_t g = 0; g < at_.shape.num_ranks; ++g) {
      const bool free = at_.replicas[g] < at_.shape.num_slots && at_.of(expert, g) == 0;
      if (free && at_.load[g] < least) least = at_.load[g], best = g;
    }
    return best;
  }

  const GreedySearch search_;
  const std::int32_t fair_share_;
  const Placement at_;
  std::int32_t* order_;
  std::int32_t* key_;
};

}  // namespace

void search(const GreedySearch& search, std::int32_t fair_share, const Placement& placement,
            std::int32_t* rank_scratch) {
  Search(search, fair_share, placement, rank_scratch).run();
}

}  // namespace tileweave

#include "tileweave/moe/planner/refinement.h"

#include <algorithm>

namespace tileweave {
namespace {

constexpr std::int32_t kNone = -1;

/// The owner, or else the least loaded other holder, that can take `count` more blocks.
std::int32_t taker_of(const Placement& at, std::int32_t expert, std::int32_t owner,
                      std::int32_t from, std::int32_t count, std::int32_t most) {
  if (at.load[owner] + count <= most) return owner;
  std::int32_t best = kNone, least = most - count + 1;
  for (std::int32_t g = 0; g < at.shape.num_ranks; ++g) {
    if (g == from || g == owner || at.of(expert, g) == 0) continue;
    if (at.load[g] < least) least = at.load[g], best = g;
  }
  return best;
}

bool balance_expert(const Placement& at, std::int32_t expert, std::int32_t owner) {
  bool moved = false;
  const std::int32_t* blocks = at.row(expert);
  for (std::int32_t i = 0; i < at.shape.num_ranks; ++i) {
    std::int32_t most = kNone, least = kNone;
    for (std::int32_t g = 0; g < at.shape.num_ranks; ++g) {
      if (blocks[g] > 0 && (most == kNone || at.load[g] > at.load[most])) most = g;
      if (blocks[g] == 0 && g != owner) continue;
      if (least == kNone || at.load[g] < at.load[least]) least = g;
    }
    if (most == kNone || at.load[most] - at.load[least] < 2) break;
    // That many single blocks would go between these two.
    at.move(expert, most, least, std::min(blocks[most], (at.load[most] - at.load[least]) / 2));
    moved = true;
  }
  return moved;
}

/// Owner first, then ascending ranks: the last of them that has blocks.
std::int32_t last_holder(const Placement& at, std::int32_t expert, std::int32_t owner) {
  const std::int32_t* blocks = at.row(expert);
  for (std::int32_t g = at.shape.num_ranks - 1; g >= 0; --g) {
    if (blocks[g] > 0 && g != owner) return g;
  }
  return owner;
}

/// Experts with replicas, ascending, and their owners: in a planner's scratch.
struct SharedExperts {
  std::int32_t* expert;
  std::int32_t* owner;
  std::int32_t count = 0;

  SharedExperts(const PlannerWorkspace& workspace, const Placement& at)
      : expert(workspace.scratch), owner(workspace.scratch + at.shape.num_experts) {
    for (std::int32_t g = 0; g < at.shape.num_ranks; ++g) {
      if (at.exported[g] == 0) continue;
      const std::int32_t first = at.shape.first_owned(g);
      for (std::int32_t e = first; e < first + at.shape.num_owned(g); ++e) {
        if (last_holder(at, e, g) == g) continue;
        expert[count] = e;
        owner[count++] = g;
      }
    }
  }
};

struct RowMove {
  std::int32_t expert = kNone, from = kNone, to = kNone;
  std::int32_t last_before = kNone, last_after = kNone;  // holder of the expert's last block
  std::int32_t most_after = 0;                           // rows of the fullest rank concerned
};

class RowBalance {
 public:
  RowBalance(const PlannerWorkspace& workspace, const Placement& at)
      : at_(at),
        gap_(workspace.expert_gap),
        rows_(workspace.rank_rows),
        shared_(workspace, at),
        most_blocks_(at.max_load()) {}

  void run() {
    for (std::int32_t i = 0; i < 8 * at_.shape.num_ranks; ++i) {
      const RowMove move = best_move(fullest());
      if (move.expert == kNone) return;
      at_.move(move.expert, move.from, move.to, 1);
      rows_[move.from] -= at_.shape.block_rows;
      rows_[move.to] += at_.shape.block_rows;
      rows_[move.last_before] += gap_[move.expert];
      rows_[move.last_after] -= gap_[move.expert];
    }
  }

 private:
  std::int32_t fullest() const {
    std::int32_t best = 0;
    for (std::int32_t g = 1; g < at_.shape.num_ranks; ++g) {
      if (rows_[g] > rows_[best]) best = g;
    }
    return best;
  }

  RowMove best_move(std::int32_t from) const {
    RowMove best{.most_after = rows_[from]};
    for (std::int32_t i = 0; i < shared_.count; ++i) {
      const std::int32_t e = shared_.expert[i], owner = shared_.owner[i];
      const std::int32_t* blocks = at_.row(e);
      if (blocks[from] == 0) continue;
      const std::int32_t before = last_holder(at_, e, owner);
      for (std::int32_t to = 0; to < at_.shape.num_ranks; ++to) {
        const bool holds = blocks[to] > 0 || to == owner;
        if (to == from || !holds || at_.load[to] + 1 > most_blocks_) continue;
        RowMove move{e, from, to, before, before, 0};
        if (from == before && blocks[from] == 1) move.last_after = last_without(e, owner, from, to);
        move.most_after = most_rows_after(move);
        if (move.most_after < best.most_after) best = move;
      }
    }
    return best;
  }

  /// Last holder once `gone` has no blocks and `more` has some.
  std::int32_t last_without(std::int32_t e, std::int32_t owner, std::int32_t gone,
                            std::int32_t more) const {
    for (std::int32_t g = at_.shape.num_ranks - 1; g >= 0; --g) {
      if (g != owner && g != gone && (at_.of(e, g) > 0 || g == more)) return g;
    }
    return owner;
  }

  /// Largest rows of any rank that the move changes: a third one may inherit the last block.
  std::int32_t most_rows_after(const RowMove& move) const {
    const auto rows = [&](std::int32_t g) {
      return rows_[g] + (g == move.to ? at_.shape.block_rows : 0) -
             (g == move.from ? at_.shape.block_rows : 0) +
             (g == move.last_before ? gap_[move.expert] : 0) -
             (g == move.last_after ? gap_[move.expert] : 0);
    };
    return std::max({rows(move.from), rows(move.to), rows(move.last_before)});
  }

  const Placement at_;
  const std::int32_t* gap_;
  std::int32_t* rows_;
  const SharedExperts shared_;
  const std::int32_t most_blocks_;
};

}  // namespace

void prune_replicas(const PlannerWorkspace& workspace, const Placement& at) {
  if (at.num_replicas() == 0) return;
  const SharedExperts shared(workspace, at);
  const std::int32_t most = at.max_load();
  // Blocks that go to another replica only make it larger, so one walk in order of size is enough.
  std::int32_t last_size = 0, last_expert = kNone, last_rank = kNone;
  for (std::int32_t step = at.num_replicas(); step > 0; --step) {
    std::int32_t size = INT32_MAX, expert = kNone, rank = kNone, owner = kNone;
    for (std::int32_t i = 0; i < shared.count; ++i) {
      const std::int32_t e = shared.expert[i];
      for (std::int32_t g = 0; g < at.shape.num_ranks; ++g) {
        const std::int32_t v = at.of(e, g);
        if (v == 0 || g == shared.owner[i] || v >= size || v < last_size) continue;
        const bool is_done =
            v == last_size && (e < last_expert || (e == last_expert && g <= last_rank));
        if (!is_done) size = v, expert = e, rank = g, owner = shared.owner[i];
      }
    }
    if (expert == kNone) return;
    last_size = size, last_expert = expert, last_rank = rank;
    const std::int32_t to = taker_of(at, expert, owner, rank, size, most);
    if (to != kNone) at.move(expert, rank, to, size);
  }
}

void balance_blocks(const PlannerWorkspace& workspace, const Placement& at) {
  if (at.num_replicas() == 0) return;
  const SharedExperts shared(workspace, at);
  for (std::int32_t pass = 0; pass < at.shape.num_ranks; ++pass) {
    bool moved = false;
    for (std::int32_t i = 0; i < shared.count; ++i) {
      moved |= balance_expert(at, shared.expert[i], shared.owner[i]);
    }
    if (!moved) return;
  }
}

void count_rank_rows(const PlannerWorkspace& workspace, const Placement& at) {
  for (std::int32_t g = 0; g < at.shape.num_ranks; ++g) {
    workspace.rank_rows[g] = at.shape.block_rows * at.load[g];
  }
  for (std::int32_t g = 0; g < at.shape.num_ranks; ++g) {
    const std::int32_t first = at.shape.first_owned(g);
    for (std::int32_t e = first; e < first + at.shape.num_owned(g); ++e) {
      const std::int32_t last = at.exported[g] == 0 ? g : last_holder(at, e, g);
      workspace.rank_rows[last] -= workspace.expert_gap[e];
    }
  }
}

void balance_rows(const PlannerWorkspace& workspace, const Placement& at) {
  count_rank_rows(workspace, at);
  if (at.num_replicas() > 0) RowBalance(workspace, at).run();
}

}  // namespace tileweave

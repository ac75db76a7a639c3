#include "tileweave/runtime/cpu/launch_board.h"

#include <algorithm>

namespace tileweave::cpu {

void LaunchBoard::block_by(LaunchState& state, std::vector<LaunchState*>& list) {
  list.push_back(&state);
  ++state.num_blockers;
}

void LaunchBoard::submit(const std::shared_ptr<LaunchState>& state,
                         const std::vector<ResolvedDependency>& dependencies) {
  in_flight_.push_back(state);
  state->opens_at = now_;
  for (const ResolvedDependency& d : dependencies) {
    LaunchState& on = *d.on;
    switch (d.release) {
      case Release::kCompleted:
        add_completion(state->begins_after, on.completion);
        if (!on.completed.load(std::memory_order_relaxed)) block_by(*state, on.at_completion);
        continue;
      case Release::kProgrammatic:
        state->grid_dependencies.push_back(d.on);
        if (on.num_triggered < on.num_blocks) block_by(*state, on.at_all_triggered);
        break;
      case Release::kLaunchCompleted:
      case Release::kAllBegun:
        if (on.num_begun < on.num_blocks) block_by(*state, on.at_all_begun);
        break;
      case Release::kFirstBegun:
        if (on.num_begun < 1) block_by(*state, on.at_first_begun);
        break;
    }
    // A block of `on` has begun, so what completes before that has completed before this, too.
    for (const auto& completion : on.begins_after) add_completion(state->begins_after, completion);
  }
  // Everything the host did so far is visible to the kernel.
  state->enqueued.store(1, std::memory_order_release);
  if (state->num_blockers == 0) open_launch(*state);
  retire();
}

void LaunchBoard::release(std::vector<LaunchState*>& list, Release how) {
  for (LaunchState* state : std::exchange(list, {})) {
    if (latency_ && state->kind != LaunchKind::kMarker) {
      state->opens_at = std::max(state->opens_at, now_ + latency_(how));
    }
    if (--state->num_blockers == 0) open_launch(*state);
  }
}

void LaunchBoard::open_launch(LaunchState& state) {
  ++num_events_;
  if (state.kind == LaunchKind::kMarker) {
    // A marker hands on the order it was given; whoever is here saw all of it complete.
    for (const auto& before : state.begins_after) before->word.load(std::memory_order_acquire);
    state.completion->word.fetch_add(1, std::memory_order_release);
    complete(state);
    return;
  }
  const auto later = [](const LaunchState* a, const LaunchState* b) {
    return a->number < b->number;
  };
  open_.insert(std::upper_bound(open_.begin(), open_.end(), &state, later), &state);
}

std::int64_t LaunchBoard::begin_block(LaunchState& state) {
  const std::int64_t position = state.num_begun++;
  if (state.num_begun == state.num_blocks) {
    open_.erase(std::find(open_.begin(), open_.end(), &state));
    release(state.at_all_begun, Release::kAllBegun);
  }
  if (position == 0) release(state.at_first_begun, Release::kFirstBegun);
  return position;
}

void LaunchBoard::trigger_block(LaunchState& state) {
  if (++state.num_triggered == state.num_blocks) {
    release(state.at_all_triggered, Release::kProgrammatic);
  }
}

void LaunchBoard::end_block(LaunchState& state, bool triggered) {
  if (!triggered) trigger_block(state);
  if (++state.num_ended == state.num_blocks) complete(state);
}

void LaunchBoard::complete(LaunchState& state) {
  ++num_events_;
  state.completed.store(true, std::memory_order_relaxed);
  state.grid_dependencies.clear();
  release(state.at_completion, Release::kCompleted);
  retire();
}

void LaunchBoard::retire() {
  while (!in_flight_.empty() && in_flight_.front()->completed.load(std::memory_order_relaxed)) {
    if (in_flight_.front()->user_number >= 0) {
      num_completed_ = in_flight_.front()->user_number + 1;
    }
    in_flight_.pop_front();
  }
}

}  // namespace tileweave::cpu

#include "tileweave/runtime/cpu/serial_engine.h"

#include <algorithm>
#include <utility>

namespace tileweave::cpu {

SerialEngine::SerialEngine(const CpuOptions& options, const DeviceLimits& limits,
                           std::function<double(Release)> latency)
    : options_(options),
      limits_(limits),
      board_(std::move(latency)),
      sms_(static_cast<std::size_t>(limits.num_sms), Sm(limits)) {}

void SerialEngine::submit(const std::shared_ptr<LaunchState>& state,
                          const std::vector<ResolvedDependency>& dependencies) {
  board_.submit(state, dependencies);
}

void SerialEngine::wait_for_count(std::int64_t count) {
  while (board_.num_completed() < count) advance();
}

void SerialEngine::wait_all() {
  if (!draining_) deadlock_ = {};
  while (!board_.idle()) advance();
  draining_ = false;
  if (error_) throw std::exchange(error_, std::nullopt).value();
}

void SerialEngine::advance() {
  if (step()) return;
  if (draining_) {
    // Blocks that wait without looking at the abort word of their launch are unwound.
    for (const auto& block : resident_) block->cancel();
    look_at_all();
    require(step(), "drain the emulated device", "every block to leave after an abort",
            std::to_string(resident_.size()) + " blocks that do not");
    return;
  }
  deadlock_ = describe_deadlock();
  drain();
}

Deadlock SerialEngine::describe_deadlock() const {
  Deadlock found;
  for (const auto& block : resident_) {
    for (int i = 0; i < block->num_lanes(); ++i) {
      const BlockLane& lane = block->lane(i);
      if (lane.finished()) continue;
      const LaneStop stop = lane.stop();
      if (stop.kind != StopKind::kWord) continue;
      found.waits.push_back({.node = block->launch().launch->node,
                             .name = block->launch().name(),
                             .block = block->index(),
                             .site = stop.site,
                             .seen = stop.seen});
    }
  }
  const auto position = [](const StuckWait& w) { return std::pair(w.node, w.block); };
  std::stable_sort(
      found.waits.begin(), found.waits.end(),
      [&](const StuckWait& a, const StuckWait& b) { return position(a) < position(b); });
  for (const LaunchState* state : board_.open()) found.not_admitted.push_back(state->name());
  return found;
}

void SerialEngine::drain() {
  draining_ = true;
  for (const auto& state : board_.in_flight()) set_abort(state->abort);
  for (const auto& block : resident_) {
    if (block->launch().abort == nullptr) block->cancel();
  }
  look_at_all();
}

bool SerialEngine::admit_without_sm(LaunchState& state) {
  if (!draining_ && state.kind != LaunchKind::kCall) return false;
  const std::int64_t block = board_.begin_block(state);
  if (!draining_) {
    const std::string failure = run_call(state);
    if (!failure.empty()) {
      error_ = kernel_error(state, block, failure);
      drain();
    }
  }
  board_.end_block(state, false);
  return true;
}

void SerialEngine::admit(LaunchState& state, std::uint32_t sm, std::int64_t index) {
  std::unique_ptr<Block> made = Block::make(pool_, {.launch = &state,
                                                    .host = this,
                                                    .index = index,
                                                    .sm = sm,
                                                    .num_lanes = state.num_lanes,
                                                    .check_views = options_.check_views});
  Block& block = *made;
  resident_.push_back(std::move(made));
  block.place = resident_.size() - 1;
  sms_[sm].take(state.footprint);
  board_.begin_block(state);
  for (int i = 0; i < block.num_lanes(); ++i) lane_stopped(block.lane(i));
}

void SerialEngine::run(BlockLane& lane) {
  Block& block = lane.block();
  lane.resume();
  if (block.triggered() && !block.trigger_counted) {
    block.trigger_counted = true;
    board_.trigger_block(block.launch());
  }
  if (!lane.finished()) {
    lane_stopped(lane);
    return;
  }
  const std::string failure = lane.failure();
  if (!failure.empty()) {
    if (!error_) error_ = kernel_error(block.launch(), block.index(), failure);
    block.cancel();  // its other lanes would wait for this one
    if (!draining_) drain();
  }
  if (--block.lanes_left == 0) finish(block);
}

void SerialEngine::finish(Block& block) {
  LaunchState& state = block.launch();
  const std::uint32_t sm = block.sm();
  const bool triggered = block.trigger_counted;
  sms_[sm].give(state.footprint);
  const std::size_t place = block.place;
  std::swap(resident_[place], resident_.back());
  resident_[place]->place = place;
  resident_.pop_back();
  board_.end_block(state, triggered);
  block_ended(sm);
}

void SerialEngine::abandon() noexcept {
  if (resident_.empty()) return;
  draining_ = true;
  for (const auto& block : resident_) {
    set_abort(block->launch().abort);
    block->cancel();
  }
  while (!resident_.empty()) {
    Block& block = *resident_.back();
    for (int i = 0; i < block.num_lanes(); ++i) {
      while (!block.lane(i).finished()) block.lane(i).resume();
    }
    resident_.pop_back();
  }
}

}  // namespace tileweave::cpu

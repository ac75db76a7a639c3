#include "tileweave/runtime/cpu/block.h"

#include <exception>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/runtime/cpu/cost_only.h"

namespace tileweave::cpu {

namespace {

std::uint32_t load_relaxed(const std::uint32_t* word) {
  return std::atomic_ref<std::uint32_t>(*const_cast<std::uint32_t*>(word))
      .load(std::memory_order_relaxed);
}

bool all_completed(const std::vector<std::shared_ptr<LaunchState>>& launches) {
  for (const auto& state : launches) {
    if (!state->completed.load(std::memory_order_relaxed)) return false;
  }
  return true;
}

}  // namespace

Block::Block(FiberPool& pool, LaunchState* launch, LaneHost* host, std::int64_t index,
             std::uint32_t sm, int num_lanes, CheckViews check_views)
    : lanes_left(num_lanes),
      launch_(launch),
      host_(host),
      index_(index),
      sm_(sm),
      num_lanes_(num_lanes),
      check_views_(check_views) {
  lanes_.reserve(static_cast<std::size_t>(num_lanes));
  for (int i = 0; i < num_lanes; ++i) lanes_.push_back(std::make_unique<BlockLane>(*this, i, pool));
  for (const auto& lane : lanes_) lane->fiber_->start(&BlockLane::entry, lane.get());
}

struct Block::Order {
  FiberPool* pool;
  Setup setup;
  Block* block = nullptr;
  std::exception_ptr failure = nullptr;
};

std::unique_ptr<Block> Block::make(FiberPool& pool, const Setup& setup) {
  Order order{&pool, setup};
  pool.run_in_nursery(&Block::fill, &order);
  if (order.failure) std::rethrow_exception(order.failure);
  return std::unique_ptr<Block>(order.block);
}

// In the nursery, which nothing orders after the scheduler that wrote the order.
TW_UNSEEN_BY_TSAN void Block::fill(void* argument) {
  Order& order = *static_cast<Order*>(argument);
  const Setup& s = order.setup;
  try {
    order.block =
        new Block(*order.pool, s.launch, s.host, s.index, s.sm, s.num_lanes, s.check_views);
  } catch (...) {
    order.failure = std::current_exception();
  }
}

BlockLane::BlockLane(Block& block, int lane, FiberPool& pool)
    : block_(block), lane_(lane), pool_(pool), fiber_(pool.take()) {}

BlockLane::~BlockLane() {
  pool_.give(std::move(fiber_));
}

void Block::become(LaunchState& launch, std::int64_t index) {
  BlockLane& lane = *lanes_.front();
  launch_ = &launch;
  index_ = index;
  triggered_.store(false, std::memory_order_relaxed);
  trigger_counted = false;
  lanes_returned_.store(0, std::memory_order_relaxed);
  lane.account = {};
  lane.stop_ = {};
  lane.judge_.reset();
}

int BlockLane::num_lanes() const {
  return block_.num_lanes_;
}
std::int64_t BlockLane::block_index() const {
  return block_.index_;
}
std::uint32_t BlockLane::sm_index() const {
  return block_.sm_;
}
std::uint64_t BlockLane::now_ns() const {
  return block_.host_->now_ns(const_cast<BlockLane&>(*this));
}

void BlockLane::entry(void* self) {
  auto& lane = *static_cast<BlockLane*>(self);
  do {
    lane.run();
  } while (lane.block_.host_->took_next_block(lane));
}

void BlockLane::run() {
  LaunchState& state = *block_.launch_;
  state.enqueued.load(std::memory_order_acquire);
  for (const auto& before : state.begins_after) before->word.load(std::memory_order_acquire);
  const Launch& launch = *state.launch;
  try {
    if (block_.check_views_ == CheckViews::kOn && launch.spec != nullptr &&
        launch.tensors != nullptr) {
      judge_ = std::make_unique<AccessJudge>(launch, launch.context.data(), block_.index_);
    }
    if (state.plays_costs) {
      play_costs(*this, state);
    } else {
      launch.kernel->cpu(*this, launch.args.data(), launch.context.data());
    }
    if (judge_ != nullptr) judge_->on_end();
    block_.host_->at_hook(*this, LaneHook::kEnd, 0);
  } catch (const Cancelled&) {
    // Nobody else can end this block; its results are thrown away.
  } catch (const std::exception& thrown) {
    failure_ = thrown.what();
    if (failure_.empty()) failure_ = "an exception that says nothing";
  } catch (...) {
    failure_ = "an exception of an unknown type";
  }
  block_.lanes_returned_.fetch_add(1, std::memory_order_relaxed);
  state.completion->word.fetch_add(1, std::memory_order_release);
}

void BlockLane::leave_if_cancelled() const {
  if (block_.cancelled() && std::uncaught_exceptions() == 0) throw Cancelled{};
}

void BlockLane::stop_for(const LaneStop& why) {
  stop_ = why;
  fiber_->suspend();
}

void BlockLane::spend(StopKind kind, double ticks) {
  if (ticks <= 0 || block_.cancelled() || std::uncaught_exceptions() != 0) return;
  stop_for({.kind = kind, .ticks = ticks});
}

TW_UNSEEN_BY_TSAN LaneStop BlockLane::stop() const {
  return stop_;
}

TW_UNSEEN_BY_TSAN bool BlockLane::unblocked() const {
  if (block_.cancelled()) return true;
  if (stop_.kind == StopKind::kBarrier) {
    // A lane that has returned will never come: let the waiting one find out.
    const std::uint64_t round = stop_.barrier_round;
    return block_.arrived_[round % 2].load(std::memory_order_relaxed) >= arrivals_wanted(round) ||
           block_.lanes_returned_.load(std::memory_order_relaxed) > 0;
  }
  return stop_.kind != StopKind::kGrid || all_completed(block_.launch_->grid_dependencies);
}

std::uint64_t BlockLane::arrivals_wanted(std::uint64_t round) const {
  return (round / 2 + 1) * static_cast<std::uint64_t>(block_.num_lanes_);
}

bool BlockLane::barrier_or(bool value) {
  if (block_.num_lanes_ == 1) return value;
  const std::uint64_t round = num_barriers_++;
  const std::uint64_t wanted = arrivals_wanted(round);
  std::atomic<std::uint64_t>& arrived = block_.arrived_[round % 2];
  if (value) block_.any_[round % 2].store(1, std::memory_order_relaxed);
  // Release what this lane did; the acquire below takes what all lanes released.
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == wanted) {
    // Every lane has left the round before: its value makes room for the round after this one.
    block_.any_[(round + 1) % 2].store(0, std::memory_order_relaxed);
  }
  while (arrived.load(std::memory_order_acquire) < wanted) {
    if (block_.lanes_returned_.load(std::memory_order_relaxed) > 0) {
      leave_if_cancelled();
      throw Error("block barrier", "every lane of the block to arrive", "a lane that has returned");
    }
    stop_for({.kind = StopKind::kBarrier, .barrier_round = round});
    leave_if_cancelled();
  }
  return block_.any_[round % 2].load(std::memory_order_relaxed) != 0;
}

std::uint32_t BlockLane::broadcast(std::uint32_t value) {
  if (block_.num_lanes_ == 1) return value;
  if (lane_ == 0) block_.broadcast_.store(value, std::memory_order_relaxed);
  barrier_or(false);
  const std::uint32_t result = block_.broadcast_.load(std::memory_order_relaxed);
  barrier_or(false);  // lane 0 may not overwrite it before everybody has read it
  return result;
}

void BlockLane::pause(const std::uint32_t* word, const WaitSite& site) {
  block_.host_->at_hook(*this, LaneHook::kStop, 0);
  account.paused = true;
  stop_for({.kind = StopKind::kWord, .word = word, .site = site, .seen = load_relaxed(word)});
  leave_if_cancelled();
}

void BlockLane::wake(const std::uint32_t* /*word*/) {
  block_.host_->at_hook(*this, LaneHook::kAdded, 0);
}

void BlockLane::launch_dependents() {
  if (block_.triggered_.exchange(true, std::memory_order_relaxed)) return;
  yield();  // the scheduler counts it, and perhaps opens the next launch, before the block goes on
  leave_if_cancelled();
}

void BlockLane::grid_dependency_wait() {
  LaunchState& state = *block_.launch_;
  block_.host_->at_hook(*this, LaneHook::kStop, 0);
  while (!all_completed(state.grid_dependencies)) {
    stop_for({.kind = StopKind::kGrid});
    leave_if_cancelled();
  }
  for (const auto& d : state.grid_dependencies) {
    d->completion->word.load(std::memory_order_acquire);
  }
  if (judge_ != nullptr) judge_->on_grid_wait();
}

void BlockLane::on_begin() {
  if (judge_ != nullptr) judge_->on_begin();
  block_.host_->at_hook(*this, LaneHook::kBegin, block_.index_);
}
void BlockLane::on_work(std::int64_t work) {
  if (judge_ != nullptr) judge_->on_work(work);
  block_.host_->at_hook(*this, LaneHook::kWork, work);
}
void BlockLane::on_wait(int operand, const Coord& ktile) {
  if (judge_ != nullptr) judge_->on_wait(operand, ktile);
  block_.host_->at_hook(*this, LaneHook::kWait, operand);
}
void BlockLane::on_signal(int operand, const Coord& ktile) {
  if (judge_ != nullptr) judge_->on_signal(operand, ktile);
  block_.host_->at_hook(*this, LaneHook::kSignal, operand);
}

}  // namespace tileweave::cpu

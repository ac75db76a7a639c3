#include "tileweave/runtime/cpu/worker.h"

#include <chrono>
#include <exception>

namespace tileweave::cpu {

namespace {

constexpr std::uint32_t kTurnsBetweenFullLooks = 64;
// As long as it takes to wake a sleeper. Without yields: on a busy machine each of them could cost
// a time slice of another process.
constexpr std::chrono::microseconds kAwakeBeforeSleep(10);
constexpr std::int64_t kSleepWithWaiters = 200;  // microseconds
constexpr std::int64_t kSleepWithout = 100'000;

std::uint32_t load_relaxed(const std::uint32_t* word) {
  return std::atomic_ref<std::uint32_t>(*const_cast<std::uint32_t*>(word))
      .load(std::memory_order_relaxed);
}

/// Whether a look at the word would let the lane go on (its own acquire load decides).
bool may_go_on(const BlockLane& lane) {
  if (!lane.unblocked()) return false;
  const LaneStop stop = lane.stop();
  if (stop.kind != StopKind::kWord || stop.site.kind == WaitKind::kMbarrier) return true;
  return reached(load_relaxed(stop.word), stop.site.base, stop.site.target);
}

}  // namespace

Worker::Worker(ThroughputEngine& engine, std::uint32_t sm)
    : engine_(engine), sm_index_(sm), sm_(engine.limits_) {}

void Worker::start() {
  thread_ = std::thread([this] { loop(); });
}

void Worker::join() {
  thread_.join();
}

std::uint64_t Worker::now_ns(BlockLane& /*lane*/) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count()) +
         1;
}

void Worker::at_hook(BlockLane& /*lane*/, LaneHook hook, std::int64_t /*value*/) {
  if (hook == LaneHook::kAdded) engine_.bell_.ring_if_heard();
}

void Worker::loop() {
  pool_ = std::make_unique<FiberPool>();  // here: its nursery knows nothing but how it began
  for (;;) {
    const Look look = ++turns_ % kTurnsBetweenFullLooks == 0 ? Look::kAll : Look::kChanged;
    if (run_waiting(look)) continue;
    if (run_ready()) continue;
    if (begin_block()) continue;
    if (engine_.stopping_.load(std::memory_order_relaxed) && resident_.empty()) break;
    rest();
  }
  pool_.reset();
}

bool Worker::run_waiting(Look look) {
  if (waiting_.empty()) return false;
  if (engine_.draining_.load(std::memory_order_relaxed)) unwind_hopeless();
  const std::size_t count = waiting_.size();
  if (look == Look::kAll) {
    // Abort words and deadlines are the kernels' own business: let every waiting lane look.
    std::vector<BlockLane*> all;
    all.swap(waiting_);
    for (BlockLane* lane : all) run(*lane);
    return true;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (next_look_ + i) % count;
    if (!may_go_on(*waiting_[at])) continue;
    BlockLane& lane = *waiting_[at];
    waiting_[at] = waiting_.back();
    waiting_.pop_back();
    next_look_ = at;
    run(lane);
    return true;
  }
  return false;
}

void Worker::unwind_hopeless() {
  for (const auto& block : resident_) {
    if (block->launch().abort == nullptr) block->cancel();
  }
}

bool Worker::run_ready() {
  if (ready_.empty()) return false;
  BlockLane& lane = *ready_.back();
  ready_.pop_back();
  run(lane);
  return true;
}

/// A launch's even share of blocks per SM. An SM with nothing else to do would begin all blocks of
/// the next launch, though they can only wait, and keep them: blocks do not move.
bool Worker::has_its_share(const LaunchState& state, const Block* leaving) const {
  const std::int64_t share = ceil_div(state.num_blocks, engine_.limits_.num_sms);
  std::int64_t held = 0;
  for (const auto& block : resident_) {
    if (block.get() != leaving && &block->launch() == &state && ++held >= share) return true;
  }
  return false;
}

/// With the lock held. `leaving`: a resident block that ends when another one begins. An SM that
/// has its share of a launch leaves further blocks to others, or begins them when one of its own
/// ends. That keeps the ground `capacity`: blocks of the first unfinished launch wait for nobody,
/// so where they hold a share they end, and the room beside later launches is theirs again.
LaunchState* Worker::first_that_fits(const Block* leaving) const {
  for (LaunchState* open : engine_.board_.open()) {
    if (open->kind == LaunchKind::kCall) return open;
    if (sm_.fits(open->footprint) && !has_its_share(*open, leaving)) return open;
  }
  return nullptr;
}

bool Worker::begin_block() {
  LaunchState* state = nullptr;
  std::int64_t index = 0;
  {
    const std::lock_guard lock(engine_.mutex_);
    state = first_that_fits();
    if (state == nullptr) return false;
    const std::int64_t events = engine_.board_.num_events();
    index = engine_.board_.begin_block(*state);
    const bool skip = engine_.draining_.load(std::memory_order_relaxed);
    if (skip) engine_.board_.end_block(*state, false);
    engine_.after_change(events);
    if (skip) return true;
  }
  if (state->kind == LaunchKind::kCall) {
    run_operator(*state, index);
  } else {
    make_resident(*state, index);
  }
  return true;
}

void Worker::end_block(LaunchState& state, bool triggered) {
  const std::lock_guard lock(engine_.mutex_);
  const std::int64_t events = engine_.board_.num_events();
  engine_.board_.end_block(state, triggered);
  engine_.after_change(events);
}

void Worker::run_operator(LaunchState& state, std::int64_t index) {
  const std::string failure = run_call(state);
  if (!failure.empty()) engine_.fail(state, index, failure);
  end_block(state, false);
}

void Worker::make_resident(LaunchState& state, std::int64_t index) {
  std::unique_ptr<Block> made;
  try {
    made = Block::make(*pool_, {.launch = &state,
                                .host = this,
                                .index = index,
                                .sm = sm_index_,
                                .num_lanes = state.num_lanes,
                                .check_views = engine_.options_.check_views});
  } catch (const std::exception& thrown) {  // no memory for a stack
    engine_.fail(state, index, thrown.what());
    end_block(state, false);
    return;
  }
  Block& block = *made;
  sm_.take(state.footprint);
  resident_.push_back(std::move(made));
  block.place = resident_.size() - 1;
  for (int i = block.num_lanes() - 1; i >= 0; --i) ready_.push_back(&block.lane(i));
}

/// Saves two switches of stacks and the lock for blocks that end without having waited. On a fiber;
/// not under ThreadSanitizer, where every block has a context of its own.
bool Worker::took_next_block(BlockLane& lane) {
  if constexpr (kTsan) return false;
  Block& block = lane.block();
  if (block.num_lanes() != 1 || !lane.failure().empty() || block.cancelled() || !ready_.empty() ||
      ++chained_ % kTurnsBetweenFullLooks == 0 || any_may_go_on()) {
    return false;
  }
  LaunchState& ended = block.launch();
  const std::lock_guard lock(engine_.mutex_);
  if (engine_.draining_.load(std::memory_order_relaxed)) return false;
  sm_.give(ended.footprint);
  LaunchState* next = first_that_fits(&block);
  if (next == nullptr || next->kind == LaunchKind::kCall || next->num_lanes != 1) {
    sm_.take(ended.footprint);
    return false;
  }
  sm_.take(next->footprint);
  const std::int64_t events = engine_.board_.num_events();
  const std::int64_t index = engine_.board_.begin_block(*next);
  const bool triggered = block.trigger_counted;
  block.become(*next, index);
  engine_.board_.end_block(ended, triggered);
  engine_.after_change(events);
  return true;
}

bool Worker::any_may_go_on() const {
  for (const BlockLane* lane : waiting_) {
    if (may_go_on(*lane)) return true;
  }
  return false;
}

void Worker::rest() {
  const std::uint32_t heard = engine_.bell_.listen();
  const auto tired = std::chrono::steady_clock::now() + kAwakeBeforeSleep;
  while (std::chrono::steady_clock::now() < tired) {
    if (any_may_go_on() || engine_.bell_.listen() != heard) return;
  }
  engine_.bell_.lie_down();
  bool something = any_may_go_on() || engine_.stopping_.load(std::memory_order_relaxed);
  if (!something) {
    const std::lock_guard lock(engine_.mutex_);
    something = first_that_fits() != nullptr;
  }
  const bool rung =
      something || engine_.bell_.sleep(heard, waiting_.empty() ? kSleepWithout : kSleepWithWaiters);
  engine_.bell_.get_up();
  if (!rung) turns_ = kTurnsBetweenFullLooks - 1;  // the next look is at all
}

void Worker::run(BlockLane& lane) {
  Block& block = lane.block();
  lane.resume();
  if (block.triggered() && !block.trigger_counted) {
    block.trigger_counted = true;
    const std::lock_guard lock(engine_.mutex_);
    const std::int64_t events = engine_.board_.num_events();
    engine_.board_.trigger_block(block.launch());
    engine_.after_change(events);
  }
  if (!lane.finished()) {
    (lane.stop().kind == StopKind::kYield ? ready_ : waiting_).push_back(&lane);
    return;
  }
  const std::string failure = lane.failure();
  if (!failure.empty()) {
    block.cancel();  // its other lanes would wait for this one
    engine_.fail(block.launch(), block.index(), failure);
  }
  if (--block.lanes_left == 0) finish(block);
}

void Worker::finish(Block& block) {
  LaunchState& state = block.launch();
  const bool triggered = block.trigger_counted;
  sm_.give(state.footprint);
  const std::size_t place = block.place;
  std::swap(resident_[place], resident_.back());
  resident_[place]->place = place;
  resident_.pop_back();
  end_block(state, triggered);
}

}  // namespace tileweave::cpu

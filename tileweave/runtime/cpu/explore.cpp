#include "tileweave/runtime/cpu/explore.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "tileweave/core/target.h"

namespace tileweave::cpu {

namespace {

constexpr double kNoReasonProbability = 1.0 / 64;
constexpr std::uint64_t kLongestDelay = 64;  // steps
constexpr std::uint64_t kStepNs = 1000;

std::uint32_t load_relaxed(const std::uint32_t* word) {
  return std::atomic_ref<std::uint32_t>(*const_cast<std::uint32_t*>(word))
      .load(std::memory_order_relaxed);
}

bool may_go_on(const BlockLane& lane, const LaneStop& stop, std::uint32_t* abort) {
  if (!lane.unblocked()) return false;
  return stop.kind != StopKind::kWord || load_relaxed(stop.word) != stop.seen ||
         abort_is_set(abort);
}

void take_out(std::vector<BlockLane*>& list, std::size_t at) {
  list[at] = list.back();
  list.pop_back();
}

}  // namespace

ExplorePolicy ExplorePolicy::of_seed(std::uint64_t seed) {
  Random random(seed ^ 0x5bd1e995U);
  ExplorePolicy policy;
  if (seed % 4 == 0) policy.admission = AdmissionOrder::kLatestFirst;
  if (seed % 4 == 1) policy.admission = AdmissionOrder::kEarliestFirst;
  policy.blocks = static_cast<BlockOrder>(random.below(3));
  constexpr double kChances[] = {1.0, 0.5, 0.05};
  policy.admit_probability = kChances[random.below(3)];
  return policy;
}

ExploreEngine::ExploreEngine(const CpuOptions& options, const DeviceLimits& limits)
    : SerialEngine(options, limits),
      policy_(ExplorePolicy::of_seed(options.seed)),
      delay_probability_(options.delay_probability),
      random_(options.seed) {
  // ThreadSanitizer takes fibers for threads, and the standard library counts the owners of a
  // shared_ptr without atomics while a process has had one thread only: lanes that copy a tile set
  // would seem to race. After a second thread it counts with atomics.
  if constexpr (TW_TSAN) std::thread([] {}).join();
}

ExploreEngine::~ExploreEngine() {
  abandon();
}

std::uint64_t ExploreEngine::now_ns(BlockLane& /*lane*/) {
  return steps_.load(std::memory_order_relaxed) * kStepNs + 1;
}

void ExploreEngine::at_hook(BlockLane& lane, LaneHook hook, std::int64_t /*value*/) {
  if (hook == LaneHook::kAdded) words_changed_.store(true, std::memory_order_relaxed);
  if (hook != LaneHook::kEnd && hook != LaneHook::kStop) lane.yield();
}

void ExploreEngine::lane_stopped(BlockLane& lane) {
  const LaneStop stop = lane.stop();
  if (may_go_on(lane, stop, lane.block().launch().abort)) {
    ready_.push_back(&lane);
  } else {
    waiting_.push_back(&lane);
  }
}

void ExploreEngine::block_ended(std::uint32_t /*sm*/) {
  rooms_changed_ = true;
  words_changed_.store(true, std::memory_order_relaxed);  // grid dependencies may have completed
}

void ExploreEngine::look_at_all() {
  rooms_changed_ = true;
  ready_.insert(ready_.end(), waiting_.begin(), waiting_.end());
  waiting_.clear();
  release_held(false);
}

void ExploreEngine::wake_changed() {
  words_changed_.store(false, std::memory_order_relaxed);
  for (std::size_t i = 0; i < waiting_.size();) {
    BlockLane& lane = *waiting_[i];
    if (may_go_on(lane, lane.stop(), lane.block().launch().abort)) {
      ready_.push_back(&lane);
      take_out(waiting_, i);
    } else {
      ++i;
    }
  }
}

void ExploreEngine::release_held(bool at_least_one) {
  const std::uint64_t now = steps_.load(std::memory_order_relaxed);
  std::size_t earliest = 0;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    if (held_[i].until < held_[earliest].until) earliest = i;
  }
  if (at_least_one && !held_.empty()) held_[earliest].until = now;
  std::erase_if(held_, [&](const Held& held) {
    if (held.until > now && !draining()) return false;
    ready_.push_back(held.lane);
    return true;
  });
}

bool ExploreEngine::step() {
  steps_.fetch_add(1, std::memory_order_relaxed);
  if (!held_.empty()) release_held(false);
  if (words_changed_.load(std::memory_order_relaxed)) wake_changed();

  const bool admit_first = random_.chance(policy_.admit_probability);
  if (admit_first && try_admit()) return true;
  if (!waiting_.empty() && random_.chance(kNoReasonProbability)) return look_for_no_reason();
  if (run_some_lane(Delays::kOn)) return true;
  if (!admit_first && try_admit()) return true;
  wake_changed();  // a word may have changed without a call to wake
  release_held(true);
  return run_some_lane(Delays::kOff);
}

bool ExploreEngine::run_some_lane(Delays delays) {
  while (!ready_.empty()) {
    const std::size_t at = random_.below(ready_.size());
    BlockLane& lane = *ready_[at];
    take_out(ready_, at);
    if (delays == Delays::kOn && !draining() && random_.chance(delay_probability_)) {
      const std::uint64_t now = steps_.load(std::memory_order_relaxed);
      held_.push_back({&lane, now + 1 + random_.below(kLongestDelay)});
      continue;
    }
    run(lane);
    return true;
  }
  return false;
}

bool ExploreEngine::look_for_no_reason() {
  const std::size_t at = random_.below(waiting_.size());
  BlockLane& lane = *waiting_[at];
  take_out(waiting_, at);
  run(lane);
  return true;
}

bool ExploreEngine::try_admit() {
  if (board().num_events() != events_seen_) {
    events_seen_ = board().num_events();
    rooms_changed_ = true;
  }
  const std::vector<LaunchState*>& open = board().open();
  if (open.empty() || !rooms_changed_) return false;
  const std::size_t count = open.size();
  const std::size_t start = policy_.admission == AdmissionOrder::kRandom ? random_.below(count) : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at =
        policy_.admission == AdmissionOrder::kLatestFirst ? count - 1 - i : (start + i) % count;
    if (admit_from(*open[at])) return true;
  }
  rooms_changed_ = false;
  return false;
}

bool ExploreEngine::admit_from(LaunchState& state) {
  if (admit_without_sm(state)) return true;
  const std::size_t count = sms().size();
  const std::size_t start = random_.below(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t sm = (start + i) % count;
    if (!sms()[sm].fits(state.footprint)) continue;
    admit(state, static_cast<std::uint32_t>(sm), block_at(state, state.num_begun));
    return true;
  }
  return false;
}

/// A permutation of the launch's blocks.
std::int64_t ExploreEngine::block_at(const LaunchState& state, std::int64_t position) const {
  const std::int64_t n = state.num_blocks;
  if (policy_.blocks == BlockOrder::kForward || n == 1) return position;
  if (policy_.blocks == BlockOrder::kBackward) return n - 1 - position;
  std::int64_t stride = n / 2 + static_cast<std::int64_t>(state.number % 7);
  while (std::gcd(stride, n) != 1) ++stride;
  return static_cast<std::int64_t>((static_cast<__int128>(position) * stride + state.number) % n);
}

std::unique_ptr<Engine> make_explore_engine(const CpuOptions& options, const DeviceLimits& limits) {
  return std::make_unique<ExploreEngine>(options, limits);
}

}  // namespace tileweave::cpu

#include "tileweave/runtime/cpu/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tileweave::cpu {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kRoundingSlack = 1e-9;  // of a tick, where blocks share an SM

std::uint32_t load_relaxed(const std::uint32_t* word) {
  return std::atomic_ref<std::uint32_t>(*const_cast<std::uint32_t*>(word))
      .load(std::memory_order_relaxed);
}

std::function<double(Release)> latency_of(const DescribedDevice& d) {
  return [full = d.start_after_completion, trigger = d.start_after_trigger,
          begun = d.start_after_begun](Release release) {
    switch (release) {
      case Release::kCompleted:
        return full;
      case Release::kProgrammatic:
        return trigger;
      case Release::kLaunchCompleted:
      case Release::kAllBegun:
      case Release::kFirstBegun:
        return begun;
    }
    return full;
  };
}

double cost_of(const Launch& launch, std::int64_t work) {
  return launch.cost.of_work ? launch.cost.of_work(work) : launch.cost.per_work;
}

}  // namespace

ModelEngine::ModelEngine(const CpuOptions& options, const DeviceLimits& limits,
                         const DescribedDevice& described)
    : SerialEngine(options, limits, latency_of(described)),
      described_(described),
      loads_(static_cast<std::size_t>(limits.num_sms)) {}

ModelEngine::~ModelEngine() {
  abandon();
}

// ---- on the lane's fiber
// -------------------------------------------------------------------------

std::uint64_t ModelEngine::now_ns(BlockLane& lane) {
  touch(lane);
  return static_cast<std::uint64_t>(std::llround(now())) + 1;
}

/// The first thing a work is seen to do comes after its prologue.
void ModelEngine::touch(BlockLane& lane) const {
  if (!lane.account.begun || lane.account.touched) return;
  lane.account.touched = true;
  lane.compute(lane.block().launch().launch->cost.prologue);
}

void ModelEngine::charge_cost(BlockLane& lane) const {
  touch(lane);
  if (!std::exchange(lane.account.cost_due, false)) return;
  lane.compute(cost_of(*lane.block().launch().launch, lane.account.work));
}

/// For a kernel without synchronisation calls: all its works at its end.
void ModelEngine::charge_block(BlockLane& lane) const {
  const Launch& launch = *lane.block().launch().launch;
  for (std::int64_t p = lane.block_index(); p < launch.num_works; p += launch.num_blocks) {
    const std::int64_t work = launch.spec ? launch.spec->order.at(p, launch.num_works) : p;
    lane.compute(launch.cost.prologue);
    lane.compute(cost_of(launch, work));
  }
}

bool ModelEngine::has_words(const BlockLane& lane, std::int64_t slot) {
  const LaunchState& state = const_cast<BlockLane&>(lane).block().launch();
  if (state.launch->context.empty() || slot >= state.launch->kernel->num_sync_slots) return false;
  return reinterpret_cast<const OperandSync*>(state.context_bytes())[slot].words != nullptr;
}

void ModelEngine::at_hook(BlockLane& lane, LaneHook hook, std::int64_t value) {
  BlockLane::Account& account = lane.account;
  switch (hook) {
    case LaneHook::kBegin:
      account = {.begun = true, .cost_due = true, .work = value};
      break;
    case LaneHook::kWork:
      if (account.touched) charge_cost(lane);  // a work that signalled nothing
      account = {.begun = true, .cost_due = true, .work = value};
      break;
    case LaneHook::kStop:
      touch(lane);
      break;
    case LaneHook::kWait:
      touch(lane);
      // A lane that paused was charged for the way from the arrival when it was woken.
      if (!std::exchange(account.paused, false) && has_words(lane, value)) {
        lane.sleep(described_.wait);
      }
      break;
    case LaneHook::kSignal:
      charge_cost(lane);
      if (has_words(lane, value)) lane.sleep(described_.signal);
      break;
    case LaneHook::kArrive:
      charge_cost(lane);
      break;
    case LaneHook::kAdded:
      break;
    case LaneHook::kEnd:
      if (account.begun) {
        charge_cost(lane);
      } else {
        charge_block(lane);
      }
      break;
  }
}

// ---- the clock
// -----------------------------------------------------------------------------------

void ModelEngine::schedule(double after, BlockLane& lane) {
  if (after <= 0) {
    ready_.push_back(&lane);
  } else {
    events_.insert({now() + after, num_scheduled_++, &lane});
  }
}

void ModelEngine::lane_stopped(BlockLane& lane) {
  const LaneStop stop = lane.stop();
  switch (stop.kind) {
    case StopKind::kYield:
      schedule(admitting_ ? described_.block_start : 0, lane);
      break;
    case StopKind::kSleep:
      schedule(stop.ticks, lane);
      break;
    case StopKind::kCompute:
      if (described_.shared_sm == 0) {
        schedule(stop.ticks, lane);
      } else {
        Load& load = loads_[lane.block().sm()];
        settle(load);
        load.parts.push_back({&lane, stop.ticks});
      }
      break;
    case StopKind::kWord:
    case StopKind::kBarrier:
    case StopKind::kGrid:
      waiting_.push_back(&lane);
      break;
  }
}

void ModelEngine::look_at_all() {
  ready_.insert(ready_.end(), waiting_.begin(), waiting_.end());
  waiting_.clear();
}

bool ModelEngine::step() {
  if (!ready_.empty()) {
    BlockLane& lane = *ready_.front();
    ready_.pop_front();
    run(lane);
    return true;
  }
  return wake_reached() || admit_earliest() || pass_time();
}

bool ModelEngine::wake_reached() {
  bool any = false;
  std::vector<BlockLane*> still;
  still.reserve(waiting_.size());
  for (BlockLane* lane : waiting_) {
    const LaneStop stop = lane->stop();
    bool wake = lane->unblocked();
    if (wake && stop.kind == StopKind::kWord) {
      const std::uint32_t value = load_relaxed(stop.word);
      wake = reached(value, stop.site.base, stop.site.target) ||
             abort_is_set(lane->block().launch().abort) || lane->block().cancelled();
    }
    if (!wake) {
      still.push_back(lane);
      continue;
    }
    any = true;
    schedule(stop.kind == StopKind::kWord ? described_.wait : 0, *lane);
  }
  waiting_.swap(still);
  return any;
}

bool ModelEngine::admit_earliest() {
  for (LaunchState* state : board().open()) {
    if (state->opens_at > now() && !draining()) continue;
    if (admit_without_sm(*state)) return true;
    for (std::size_t sm = 0; sm < sms().size(); ++sm) {
      if (!sms()[sm].fits(state->footprint)) continue;
      admitting_ = true;
      admit(*state, static_cast<std::uint32_t>(sm), state->num_begun);
      admitting_ = false;
      return true;
    }
  }
  return false;
}

bool ModelEngine::pass_time() {
  double next = kNever;
  if (!events_.empty()) next = events_.begin()->at;
  for (const Load& load : loads_) next = std::min(next, next_end(load));
  for (const LaunchState* state : board().open()) {
    if (state->opens_at > now()) next = std::min(next, state->opens_at);
  }
  if (next == kNever) return false;
  now_.store(next, std::memory_order_relaxed);
  board().set_time(next);
  while (!events_.empty() && events_.begin()->at <= next) {
    ready_.push_back(events_.begin()->lane);
    events_.erase(events_.begin());
  }
  for (Load& load : loads_) {
    if (load.parts.empty()) continue;
    settle(load);
    std::erase_if(load.parts, [&](const Load::Part& part) {
      if (part.left > kRoundingSlack) return false;
      ready_.push_back(part.lane);
      return true;
    });
  }
  return true;
}

/// How many times longer than alone a lane takes: the number of blocks computing on the SM.
double ModelEngine::slowdown(const Load& load) {
  double blocks = 0;
  for (const Load::Part& part : load.parts) blocks += 1.0 / part.lane->num_lanes();
  return std::max(1.0, blocks);
}

void ModelEngine::settle(Load& load) const {
  const double done = load.parts.empty() ? 0 : (now() - load.since) / slowdown(load);
  for (Load::Part& part : load.parts) part.left -= done;
  load.since = now();
}

double ModelEngine::next_end(const Load& load) const {
  double least = kNever;
  for (const Load::Part& part : load.parts) least = std::min(least, part.left);
  if (least == kNever) return kNever;
  // At least the next number after now: rounding must not stop the clock.
  return std::max(load.since + least * slowdown(load), std::nextafter(now(), kNever));
}

std::unique_ptr<Engine> make_model_engine(const CpuOptions& options, const DeviceLimits& limits,
                                          const DescribedDevice& described) {
  return std::make_unique<ModelEngine>(options, limits, described);
}

}  // namespace tileweave::cpu

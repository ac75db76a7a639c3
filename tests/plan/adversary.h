// Adversary: a device that admits blocks in the worst order it can find.
//
// Plays a scheduled plan on a few SMs and searches all orders of admission, completion and (if
// asked) queueing for a state in which nothing can move although work is left. Independent of the
// proof it tests: it shares only the plan, the schedule, and the maps enumerated by WorkGraph. A
// searched state is a string; SMs are interchangeable, so states are kept up to their renaming.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tileweave/plan/starvation.h"
#include "tileweave/plan/verify.h"
#include "tileweave/plan/work_graph.h"

namespace tileweave::testing {

/// How the device chooses whose block is placed next.
enum class Queueing {
  kAnyLaunch,    // any launch that is released
  kHeadOfQueue,  // launches queue up in any order; only blocks of the first one are placed
};

enum class Outcome { kFinishes, kDeadlock, kGaveUp };

class Adversary {
 public:
  Adversary(const Plan& plan, const Schedule& schedule, const DeviceLimits& device,
            Queueing queueing)
      : plan_(plan), works_(plan), device_(device), queueing_(queueing) {
    for (NodeId id = 0; id < static_cast<NodeId>(plan.nodes().size()); ++id) works_.add(id);
    for (std::size_t n = 0; n < schedule.nodes.size(); ++n) {
      add_launches(static_cast<NodeId>(n), schedule.nodes[n]);
    }
  }

  Outcome search(std::size_t max_states) {
    State start;
    for (std::size_t l = 0; l < launches_.size(); ++l) {
      start.blocks.append(2 * static_cast<std::size_t>(launches_[l].blocks), '\0');
    }
    seen_.clear();
    std::vector<State> open = {start};
    while (!open.empty()) {
      const State state = std::move(open.back());
      open.pop_back();
      const std::size_t before = open.size();
      const bool all_done = expand(state, open);
      if (open.size() == before && !all_done && !moved_) {
        stuck_ = state;
        return Outcome::kDeadlock;
      }
      if (seen_.size() > max_states) return Outcome::kGaveUp;
    }
    return Outcome::kFinishes;
  }

 private:
  static constexpr char kDone = 127;
  static constexpr NodeId kWaitKernel = -1;

  struct Launch {
    NodeId node = kWaitKernel;
    KernelResources resources;
    std::int64_t blocks = 1;
    std::size_t first = 0;         // index of its first block
    int stream_before = -1;        // launch that must be done
    std::vector<int> done_first;   // launches that must be done
    std::vector<int> begun_first;  // launches whose blocks must all have begun
    int grid_wait = -1;            // launch that blocks wait for before anything else
    int counts = -1;               // wait kernel: launch whose blocks must begin
    bool first_only = false;       // ... one of them
  };
  struct State {
    std::string blocks;  // per block: 0 not begun, SM + 1, or kDone; then works passed
    std::string queue;   // launches in the device's queue, in order
  };

  void add_launches(NodeId id, const ScheduledNode& scheduled) {
    const NodeSpec& spec = plan_.nodes()[static_cast<std::size_t>(id)];
    Launch launch;
    launch.node = id;
    launch.resources = spec.resources;
    launch.blocks = blocks_of(spec);
    int wait_kernel = -1;
    const std::pair<int, int> stream = {spec.rank, scheduled.stream};
    for (const auto& [key, last] : last_on_stream_) {
      if (key == stream) launch.stream_before = last;
    }
    for (const Dependency& dependency : scheduled.after) {
      const int on = launch_of_node_[static_cast<std::size_t>(dependency.on)];
      switch (dependency.release) {
        case Release::kCompleted:
          launch.done_first.push_back(on);
          break;
        case Release::kProgrammatic:
          launch.grid_wait = on;
          launch.begun_first.push_back(on);
          if (launch.stream_before == on) launch.stream_before = -1;
          break;
        case Release::kLaunchCompleted:
          break;  // best effort promises nothing
        case Release::kAllBegun:
        case Release::kFirstBegun: {
          Launch waiter;
          waiter.resources = kWaitKernelResources;
          waiter.stream_before = launch.stream_before;
          waiter.counts = on;
          waiter.first_only = dependency.release == Release::kFirstBegun;
          wait_kernel = push(waiter);
          break;
        }
      }
    }
    if (wait_kernel >= 0) launch.done_first.push_back(wait_kernel);
    const int index = push(launch);
    launch_of_node_.push_back(index);
    std::erase_if(last_on_stream_, [&](const auto& entry) { return entry.first == stream; });
    last_on_stream_.emplace_back(stream, index);
  }

  int push(Launch launch) {
    if (!launches_.empty()) {
      launch.first = launches_.back().first + static_cast<std::size_t>(launches_.back().blocks);
    }
    launches_.push_back(std::move(launch));
    return static_cast<int>(launches_.size()) - 1;
  }

  static char place_of(const State& s, std::size_t block) { return s.blocks[2 * block]; }
  static std::int64_t passed(const State& s, std::size_t block) { return s.blocks[2 * block + 1]; }

  std::int64_t num_begun(const State& s, int l) const {
    const Launch& launch = launches_[static_cast<std::size_t>(l)];
    std::int64_t begun = 0;
    for (std::int64_t b = 0; b < launch.blocks; ++b) {
      begun += place_of(s, launch.first + static_cast<std::size_t>(b)) != 0 ? 1 : 0;
    }
    return begun;
  }
  bool all_begun(const State& s, int l) const {
    return num_begun(s, l) == launches_[static_cast<std::size_t>(l)].blocks;
  }
  bool done(const State& s, int l) const {
    const Launch& launch = launches_[static_cast<std::size_t>(l)];
    for (std::int64_t b = 0; b < launch.blocks; ++b) {
      if (place_of(s, launch.first + static_cast<std::size_t>(b)) != kDone) return false;
    }
    return true;
  }
  bool released(const State& s, const Launch& launch) const {
    const auto is_done = [&](int l) { return done(s, l); };
    const auto has_begun = [&](int l) { return all_begun(s, l); };
    return (launch.stream_before < 0 || done(s, launch.stream_before)) &&
           std::all_of(launch.done_first.begin(), launch.done_first.end(), is_done) &&
           std::all_of(launch.begun_first.begin(), launch.begun_first.end(), has_begun);
  }

  /// Block b of n runs works b, b + n, ...
  std::int64_t num_works(const Launch& launch, std::int64_t block) const {
    if (launch.node == kWaitKernel) return 1;
    const std::int64_t works = plan_.nodes()[static_cast<std::size_t>(launch.node)].num_works;
    return block < works ? ceil_div(works - block, launch.blocks) : 0;
  }
  bool work_done(const State& s, const WorkRef& work) const {
    const Launch& launch =
        launches_[static_cast<std::size_t>(launch_of_node_[static_cast<std::size_t>(work.node)])];
    const auto block = static_cast<std::size_t>(work.work % launch.blocks);
    return passed(s, launch.first + block) > work.work / launch.blocks;
  }
  bool may_pass(const State& s, const Launch& launch, std::int64_t block) const {
    if (launch.node == kWaitKernel) {
      return launch.first_only ? num_begun(s, launch.counts) > 0 : all_begun(s, launch.counts);
    }
    if (launch.grid_wait >= 0 && !done(s, launch.grid_wait)) return false;
    const std::int64_t at = passed(s, launch.first + static_cast<std::size_t>(block));
    if (at >= num_works(launch, block)) return true;  // nothing left but to leave
    const WorkRef work{launch.node, block + at * launch.blocks};
    for (const TileRef& tile : works_.waits(work)) {
      for (const WorkRef& arrival : works_.arrivals(tile)) {
        if (arrival.node < work.node && !work_done(s, arrival)) return false;
      }
    }
    return true;
  }

  bool fits(const State& s, const Launch& launch, int sm) const {
    BlockFootprint sum = footprint(launch.resources, device_);
    for (const Launch& other : launches_) {
      const BlockFootprint one = footprint(other.resources, device_);
      for (std::int64_t b = 0; b < other.blocks; ++b) {
        if (place_of(s, other.first + static_cast<std::size_t>(b)) != sm + 1) continue;
        sum.threads += one.threads;
        sum.registers += one.registers;
        sum.shared_bytes += one.shared_bytes;
        sum.slots += one.slots;
      }
    }
    return sum.threads <= device_.threads_per_sm && sum.registers <= device_.registers_per_sm &&
           sum.shared_bytes <= device_.shared_bytes_per_sm && sum.slots <= device_.blocks_per_sm;
  }

  /// SMs are numbered in the order in which blocks mention them.
  void keep(State state, std::vector<State>& open) {
    moved_ = true;
    std::array<char, 128> renamed = {};
    char next = 1;
    for (std::size_t b = 0; b < state.blocks.size(); b += 2) {
      const char sm = state.blocks[b];
      if (sm == 0 || sm == kDone) continue;
      char& name = renamed[static_cast<std::size_t>(sm)];
      if (name == 0) name = next++;
      state.blocks[b] = name;
    }
    if (seen_.insert(state.blocks + state.queue).second) open.push_back(std::move(state));
  }

  bool expand(const State& s, std::vector<State>& open) {
    moved_ = false;
    bool all_done = true;
    for (std::size_t l = 0; l < launches_.size(); ++l) {
      const Launch& launch = launches_[l];
      std::int64_t next = -1;  // first block that has not begun
      for (std::int64_t b = 0; b < launch.blocks; ++b) {
        const std::size_t at = launch.first + static_cast<std::size_t>(b);
        const char place = place_of(s, at);
        if (place != kDone) all_done = false;
        if (place == 0 && next < 0) next = b;
        if (place == 0 || place == kDone || !may_pass(s, launch, b)) continue;
        State moved = s;
        char& count = moved.blocks[2 * at + 1];
        if (count < num_works(launch, b)) ++count;
        if (count == num_works(launch, b)) moved.blocks[2 * at] = kDone;
        keep(std::move(moved), open);
      }
      if (next < 0) continue;
      const char id = static_cast<char>(l + 1);
      const bool queued = s.queue.find(id) != std::string::npos;
      if (queueing_ == Queueing::kHeadOfQueue && !queued) {
        if (num_begun(s, static_cast<int>(l)) == 0 && released(s, launch)) {
          State moved = s;
          moved.queue += id;
          keep(std::move(moved), open);
        }
        continue;
      }
      if (queueing_ == Queueing::kHeadOfQueue && s.queue.front() != id) continue;
      if (queueing_ == Queueing::kAnyLaunch && !released(s, launch)) continue;
      for (int sm = 0; sm < device_.num_sms; ++sm) {
        if (!fits(s, launch, sm)) continue;
        State moved = s;
        moved.blocks[2 * (launch.first + static_cast<std::size_t>(next))] =
            static_cast<char>(sm + 1);
        if (queueing_ == Queueing::kHeadOfQueue && next + 1 == launch.blocks) {
          moved.queue.erase(0, 1);
        }
        keep(std::move(moved), open);
      }
    }
    return all_done;
  }

  const Plan& plan_;
  WorkGraph works_;
  DeviceLimits device_;
  Queueing queueing_;
  std::vector<Launch> launches_;
  std::vector<int> launch_of_node_;
  std::vector<std::pair<std::pair<int, int>, int>> last_on_stream_;
  std::unordered_set<std::string> seen_;
  State stuck_;
  bool moved_ = false;
};

}  // namespace tileweave::testing

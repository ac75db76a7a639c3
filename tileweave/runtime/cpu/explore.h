// ExploreEngine: one thread, every choice from a seed; the same seed gives the same interleaving.
//
// At each step it chooses among: run a lane that may go on, begin a block of any launch that the
// rules allow on any SM with room, look again at a waiting lane for no reason, hold a lane back.
// Lanes also give way at every synchronisation call, before and after each arrival. The low bits of
// the seed pick a bias, because uniform choices seldom reach the extremes: see ExplorePolicy.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "tileweave/runtime/cpu/random.h"
#include "tileweave/runtime/cpu/serial_engine.h"

namespace tileweave::cpu {

enum class AdmissionOrder : std::uint8_t {
  kRandom,
  kEarliestFirst,  // blocks of the earliest launch that has any
  kLatestFirst     // consumers before their producers, wherever nothing forbids it
};

/// Order in which the blocks of one launch begin; a GPU promises none.
enum class BlockOrder : std::uint8_t { kForward, kBackward, kScattered };

/// What a seed prefers. seed % 4: 0 latest first, 1 earliest first, 2 and 3 random. The rest is
/// drawn from the seed.
struct ExplorePolicy {
  AdmissionOrder admission = AdmissionOrder::kRandom;
  BlockOrder blocks = BlockOrder::kForward;
  double admit_probability = 0.5;  // 1: fill every SM before anything runs

  static ExplorePolicy of_seed(std::uint64_t seed);
};

class ExploreEngine final : public SerialEngine {
 public:
  ExploreEngine(const CpuOptions& options, const DeviceLimits& limits);
  ~ExploreEngine() override;

 protected:
  bool step() override;
  void lane_stopped(BlockLane& lane) override;
  void block_ended(std::uint32_t sm) override;
  void look_at_all() override;
  std::uint64_t now_ns(BlockLane& lane) override;
  void at_hook(BlockLane& lane, LaneHook hook, std::int64_t value) override;

 private:
  struct Held {
    BlockLane* lane;
    std::uint64_t until;
  };

  bool try_admit();
  bool admit_from(LaunchState& state);
  enum class Delays : std::uint8_t { kOff, kOn };
  bool run_some_lane(Delays delays);
  bool look_for_no_reason();
  void wake_changed();
  void release_held(bool at_least_one);
  std::int64_t block_at(const LaunchState& state, std::int64_t position) const;

  ExplorePolicy policy_;
  double delay_probability_;
  Random random_;
  std::vector<BlockLane*> ready_;
  std::vector<BlockLane*> waiting_;
  std::vector<Held> held_;
  bool rooms_changed_ = true;  // an SM or the set of open launches changed since nothing fitted
  std::int64_t events_seen_ = -1;
  std::atomic<bool> words_changed_{false};  // set on fibers
  std::atomic<std::uint64_t> steps_{0};     // read on fibers
};

}  // namespace tileweave::cpu

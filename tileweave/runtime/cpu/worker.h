// Worker: one emulated SM of the throughput engine and the thread that runs its blocks.
//
// Everything but the board (under the engine's lock) belongs to the thread alone.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "tileweave/runtime/cpu/sm.h"
#include "tileweave/runtime/cpu/throughput.h"

namespace tileweave::cpu {

class Worker final : public LaneHost {
 public:
  Worker(ThroughputEngine& engine, std::uint32_t sm);
  void start();
  void join();

  std::uint64_t now_ns(BlockLane& lane) override;
  void at_hook(BlockLane& lane, LaneHook hook, std::int64_t value) override;
  bool took_next_block(BlockLane& lane) override;

 private:
  enum class Look : std::uint8_t { kChanged, kAll };

  void loop();
  bool run_waiting(Look look);
  bool run_ready();
  bool has_its_share(const LaunchState& state, const Block* leaving) const;
  LaunchState* first_that_fits(const Block* leaving = nullptr) const;
  bool begin_block();
  void end_block(LaunchState& state, bool triggered);
  void run_operator(LaunchState& state, std::int64_t index);
  void make_resident(LaunchState& state, std::int64_t index);
  void rest();
  bool any_may_go_on() const;
  void run(BlockLane& lane);
  void finish(Block& block);
  void unwind_hopeless();

  ThroughputEngine& engine_;
  std::uint32_t sm_index_;
  Sm sm_;
  std::unique_ptr<FiberPool> pool_;
  std::vector<std::unique_ptr<Block>> resident_;
  std::vector<BlockLane*> ready_;    // taken from the back
  std::vector<BlockLane*> waiting_;  // looked at from next_look_ on
  std::size_t next_look_ = 0;
  std::uint32_t turns_ = 0;
  std::uint32_t chained_ = 0;  // blocks run on one fiber in a row
  std::thread thread_;
};

}  // namespace tileweave::cpu

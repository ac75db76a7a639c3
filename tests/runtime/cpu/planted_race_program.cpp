// A chain of kernels over semaphores with one fault planted, for ThreadSanitizer to find:
//   planted_race_program <way> <fault>
// way: throughput, explore. fault: none, no_wait (consumer reads without waiting), no_barrier (a
// lane reads what another lane of its block wrote), no_signal_order (arrival without release),
// stream_order (launches on two streams that only happen to follow one another).
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/runtime/cpu/rig.h"

namespace {

using namespace tileweave;
using namespace tileweave::test;

void run(CpuWay way, const std::string& fault) {
  constexpr std::int64_t kTiles = 8;
  Rig rig({.way = way, .num_sms = 2, .seed = 3});
  std::vector<int> first(2 * kTiles, 0);
  std::vector<int> second(2 * kTiles, 0);
  Semaphores& s = rig.semaphores(kTiles);
  auto context = rig.context<1>(0, kTiles);
  context.set(0, Rig::operand(s, {kTiles}, {1}, {1}, 1));
  rig.queue().launch(rig.launch<1>(
      0, "producer", kTiles, context,
      [&](CpuLane& lane, const Context<1>& c) {
        Cta<1> sync(c, AtomicsCpu(lane));
        if (!sync.begin_cta()) return;
        const std::int64_t tile = lane.block_index();
        const auto at = static_cast<std::size_t>(2 * tile + lane.lane());
        first[at] = 1;
        if (fault == "no_barrier") {
          first[at] += first[at ^ 1U];
          sync.atomics().barrier();
        }
        if (fault == "no_signal_order") {
          sync.atomics().barrier();
          if (lane.lane() == 0) sync.atomics().add_relaxed(c.operands[0].words + tile, 1);
        } else {
          sync.signal_output(0, {tile});
        }
      },
      2));
  const bool waits = fault != "no_wait" && fault != "stream_order";
  rig.queue().launch(on(rig.launch<1>(
                            1, "consumer", kTiles, context,
                            [&, waits](CpuLane& lane, const Context<1>& c) {
                              Cta<1> sync(c, AtomicsCpu(lane));
                              if (!sync.begin_cta()) return;
                              const std::int64_t tile = lane.block_index();
                              if (waits && !sync.wait_input(0, {tile})) return;
                              const auto at = static_cast<std::size_t>(2 * tile);
                              second[at + static_cast<std::size_t>(lane.lane())] =
                                  first[at + 1 - static_cast<std::size_t>(lane.lane())];
                            },
                            2),
                        1,
                        fault == "stream_order" ? std::vector<Dependency>{{0, Release::kAllBegun}}
                                                : std::vector<Dependency>{}));
  rig.queue().synchronize();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  run(std::strcmp(argv[1], "explore") == 0 ? CpuWay::kExplore : CpuWay::kThroughput, argv[2]);
  std::puts("done");
  return 0;
}

// Runs the protocol on real threads with one planted fault, for ThreadSanitizer to find.
//
// usage: protocol_faults_program FAULT, one of: none, signal-without-release, poll-without-acquire,
// no-barrier-before-signal, no-barrier-after-wait, early-reuse. The data is ordinary memory; the
// only order between blocks is the protocol's, so each missing piece is a data race. Exit status 2
// for a wrong argument and 3 for a wrong value read by the program without a fault.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/sync/operands.h"
#include "tests/sync/thread_lanes.h"
#include "tests/tile/brute_force.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

using testing::TestDevice;
using testing::TestTensor;
using testing::ThreadGrid;
using testing::ThreadLane;

class SignalWithoutRelease : public AtomicsCpu {
 public:
  using AtomicsCpu::AtomicsCpu;
  void add_release(std::uint32_t* word, std::uint32_t n, bool /*system_scope*/) {
    add_relaxed(word, n);
  }
};

class PollWithoutAcquire : public AtomicsCpu {
 public:
  using AtomicsCpu::AtomicsCpu;
  std::uint32_t load_acquire(const std::uint32_t* word, bool /*system_scope*/) {
    return load_relaxed(word);
  }
};

class NoBarrierBeforeSignal : public AtomicsCpu {
 public:
  using AtomicsCpu::AtomicsCpu;
  void barrier() {}
};

class NoBarrierAfterWait : public AtomicsCpu {
 public:
  using AtomicsCpu::AtomicsCpu;
  bool barrier_or(bool value) { return value; }
};

enum class Reuse { kAfterTheRun, kEarly };

constexpr int kLanes = 2;
constexpr int kRuns = 2;

/// Two producers and two consumers of a tensor with two data tiles, twice.
class Program {
 public:
  template <class Atomics>
  int run(Reuse reuse) {
    if (reuse == Reuse::kEarly) {
      // Run 2 has words of its own, so only the buffer is used too early.
      TestTensor second = tensor_;
      ThreadGrid consumers = consume<Atomics>(tensor_, 1);
      ThreadGrid producers = produce<Atomics>(tensor_, 1);
      producers.join();
      ThreadGrid next = produce<Atomics>(second, 2);
      next.join();
      consumers.join();
      return 0;
    }
    for (int run = 1; run <= kRuns; ++run) {
      ThreadGrid consumers = consume<Atomics>(tensor_, run);
      ThreadGrid producers = produce<Atomics>(tensor_, run);
      producers.join();
      consumers.join();
      tensor_.end_run();
    }
    return wrong_ == 0 ? 0 : 3;
  }

 private:
  template <class Atomics>
  ThreadGrid produce(TestTensor& words, int run) {
    SyncContext<1> context{};
    context.header = device_.header(0, 2);
    context.set(0, words.operand(words.producer));
    return {2, kLanes, [this, context, run](ThreadLane& lane) {
              SyncCta<Atomics, 1> sync(context, Atomics(lane));
              if (!sync.begin_cta()) return;
              const Coord tile = tensor_.producer.coord(lane.block_index());
              int turn = 0;
              testing::for_each_element(tensor_.producer.box(tile), [&](const Coord& element) {
                if (turn++ % kLanes == lane.lane()) {
                  tensor_.values[tensor_.at(element)] = run;
                }
              });
              sync.signal_output(0, tile);
            }};
  }

  template <class Atomics>
  ThreadGrid consume(TestTensor& words, int run) {
    SyncContext<1> context{};
    context.header = device_.header(1, 2);
    context.header.flags = SyncHeader::kWaits;
    context.set(0, words.operand(consumer_));
    return {2, kLanes, [this, context, run](ThreadLane& lane) {
              SyncCta<Atomics, 1> sync(context, Atomics(lane));
              if (!sync.begin_cta()) return;
              const Coord tile = consumer_.coord(lane.block_index());
              if (!sync.wait_input(0, tile)) return;
              testing::for_each_element(consumer_.box(tile), [&](const Coord& element) {
                if (tensor_.values[tensor_.at(element)] != run) ++wrong_;
              });
            }};
  }

  TestDevice device_;
  TestTensor tensor_{{4, 4}, {2, 4}, {4, 2}, 0U - 2};
  Tiling consumer_{{4, 4}, {2, 4}};
  std::atomic<int> wrong_{0};
};

int run(const std::string& fault) {
  Program program;
  if (fault == "none") return program.run<AtomicsCpu>(Reuse::kAfterTheRun);
  if (fault == "early-reuse") return program.run<AtomicsCpu>(Reuse::kEarly);
  if (fault == "signal-without-release") {
    program.run<SignalWithoutRelease>(Reuse::kAfterTheRun);
  } else if (fault == "poll-without-acquire") {
    program.run<PollWithoutAcquire>(Reuse::kAfterTheRun);
  } else if (fault == "no-barrier-before-signal") {
    program.run<NoBarrierBeforeSignal>(Reuse::kAfterTheRun);
  } else if (fault == "no-barrier-after-wait") {
    program.run<NoBarrierAfterWait>(Reuse::kAfterTheRun);
  } else {
    std::fprintf(stderr, "protocol_faults_program: no fault is named '%s'\n", fault.c_str());
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace tileweave

int main(int argc, char** argv) {
  return tileweave::run(argc == 2 ? argv[1] : "");
}

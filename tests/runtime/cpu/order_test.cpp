#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include "tests/runtime/cpu/rig.h"

namespace tileweave::test {
namespace {

/// Begins and ends of the blocks of two launches, `second` released after `first` by `release`.
struct Seen {
  int first_begun = 0;    // blocks of the first launch that had begun ...
  int first_ended = 0;    // ... and ended when the second's first block began
  int ended_at_wait = 0;  // and when its first grid_dependency_wait returned
};

Seen run_two(std::uint64_t seed, std::int32_t second_stream, std::vector<Dependency> after) {
  constexpr int kBlocks = 6;
  Rig rig({.way = CpuWay::kExplore, .num_sms = 3, .seed = seed, .delay_probability = 0.2});
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  std::mutex guard;  // one thread runs the blocks, but nothing orders them
  Seen seen{-1, -1, -1};
  rig.queue().launch(rig.plain(0, "first", kBlocks, [&](CpuLane& lane) {
    ++begun;
    lane.launch_dependents();
    lane.on_begin();  // gives way
    lane.on_begin();
    ++ended;
  }));
  rig.queue().launch(on(rig.plain(1, "second", kBlocks,
                                  [&](CpuLane& lane) {
                                    {
                                      const std::lock_guard lock(guard);
                                      if (seen.first_begun < 0) {
                                        seen.first_begun = begun;
                                        seen.first_ended = ended;
                                      }
                                    }
                                    lane.grid_dependency_wait();
                                    const std::lock_guard lock(guard);
                                    if (seen.ended_at_wait < 0) seen.ended_at_wait = ended;
                                  }),
                        second_stream, std::move(after)));
  rig.queue().synchronize();
  return seen;
}

/// Least values over seeds: what the release rule guarantees, and (as it must really occur) no
/// more.
Seen least_of(std::int32_t second_stream, const std::vector<Dependency>& after) {
  Seen least{99, 99, 99};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Seen seen = run_two(seed, second_stream, after);
    least.first_begun = std::min(least.first_begun, seen.first_begun);
    least.first_ended = std::min(least.first_ended, seen.first_ended);
    least.ended_at_wait = std::min(least.ended_at_wait, seen.ended_at_wait);
  }
  return least;
}

TEST(Order, StreamsAreIndependent) {
  const Seen least = least_of(1, {});
  EXPECT_EQ(least.first_begun, 0);
  EXPECT_EQ(least.first_ended, 0);
}

TEST(Order, OneStreamMeansCompletion) {
  const Seen least = least_of(0, {});
  EXPECT_EQ(least.first_ended, 6);
}

TEST(Order, CompletedMeansCompletion) {
  const Seen least = least_of(1, {{0, Release::kCompleted}});
  EXPECT_EQ(least.first_ended, 6);
}

TEST(Order, ProgrammaticBeginsEarlyAndWaitsForTheGrid) {
  const Seen least = least_of(0, {{0, Release::kProgrammatic}});
  EXPECT_EQ(least.first_begun, 6);
  EXPECT_EQ(least.first_ended, 0);
  EXPECT_EQ(least.ended_at_wait, 6);
}

TEST(Order, LaunchCompletedAndAllBegunMeanThatAllBlocksHaveBegun) {
  for (const Release release : {Release::kLaunchCompleted, Release::kAllBegun}) {
    const Seen least = least_of(1, {{0, release}});
    // A block counts as begun when an SM takes it in; its first instruction may come later.
    EXPECT_EQ(least.first_ended, 0);
    EXPECT_LT(least.first_begun, 6);
  }
}

TEST(Order, FirstBegunMeansThatOneBlockHasBegun) {
  const Seen least = least_of(1, {{0, Release::kFirstBegun}});
  EXPECT_EQ(least.first_ended, 0);
  EXPECT_LT(least.first_begun, 6);
}

TEST(Order, BegunReleasesHoldBackLaterBlocks) {
  // One SM with room for two blocks: `second` can begin only as the rule says.
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CpuOptions options{.way = CpuWay::kExplore, .num_sms = 1, .seed = seed};
    options.limits.name = "two";
    options.limits.blocks_per_sm = 2;
    std::array<std::atomic<int>, 2> least_ended = {99, 99};
    for (const Release release : {Release::kAllBegun, Release::kFirstBegun}) {
      Rig rig(options);
      std::atomic<int> ended{0};
      rig.queue().launch(rig.plain(0, "first", 5, [&](CpuLane&) { ++ended; }));
      auto& least = least_ended[release == Release::kAllBegun ? 0 : 1];
      rig.queue().launch(
          on(rig.plain(1, "second", 5,
                       [&](CpuLane&) { least = std::min(least.load(), ended.load()); }),
             1, {{0, release}}));
      rig.queue().synchronize();
    }
    EXPECT_GE(least_ended[0].load(), 4) << "seed " << seed;  // the fifth needed four to have left
  }
}

TEST(Order, BarrierWaitsForEverythingBefore) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Rig rig({.way = CpuWay::kExplore, .num_sms = 2, .seed = seed, .delay_probability = 0.3}, 3);
    std::atomic<int> ended{0};
    for (NodeId n = 0; n < 3; ++n) {
      rig.queue().launch(on(rig.plain(n, "before", 4,
                                      [&](CpuLane& lane) {
                                        lane.on_begin();
                                        ++ended;
                                      }),
                            n));
    }
    rig.queue().barrier();
    for (NodeId n = 0; n < 3; ++n) {
      rig.queue().launch(
          on(rig.plain(n, "after", 4,
                       [&](CpuLane&) { EXPECT_GE(ended.load(), 12) << "seed " << seed; }),
             n));
    }
    rig.queue().synchronize();
    EXPECT_EQ(ended.load(), 12);
  }
}

/// Most blocks resident on one SM at a time, each seen from inside.
int most_resident(const CpuOptions& options, const KernelResources& resources) {
  Rig rig(options);
  std::vector<std::atomic<int>> resident(static_cast<std::size_t>(rig.device().limits().num_sms));
  std::atomic<int> most{0};
  Semaphores& s = rig.semaphores(1);
  auto context = rig.context<1>(0, 40);
  context.set(0, Rig::operand(s, {40}, {1}, {40}, 40));
  Launch launch = rig.launch<1>(0, "sits", 40, context, [&](CpuLane& lane, const auto& c) {
    Cta<1> sync(c, AtomicsCpu(lane));
    auto& here = resident[lane.sm_index()];
    const int now = here.fetch_add(1) + 1;
    int before = most.load();
    while (before < now && !most.compare_exchange_weak(before, now)) {
    }
    if (sync.begin_cta()) {
      // Waits for a few more than fit: blocks pile up until a deadline or a deadlock ends them.
      sync.wait_input(0, {0});
    }
    here.fetch_sub(1);
  });
  auto& header = reinterpret_cast<Context<1>*>(launch.context.data())->header;
  header.deadline_ns = options.way == CpuWay::kThroughput ? 20'000'000 : 0;
  launch.resources = resources;
  rig.queue().launch(launch);
  rig.queue().synchronize();
  return most.load();
}

TEST(Residency, IsWhatTheLimitsOfAnSmAllow) {
  for (const CpuWay way : {CpuWay::kThroughput, CpuWay::kExplore, CpuWay::kModel}) {
    CpuOptions options{.way = way, .num_sms = 2};
    options.limits = {.name = "tested",
                      .threads_per_sm = 2048,
                      .blocks_per_sm = 6,
                      .shared_bytes_per_sm = 100 * 1024,
                      .shared_bytes_per_block = 99 * 1024,
                      .shared_reserved = 1024};
    const KernelResources slots{};
    const KernelResources threads{.threads = 1024};
    const KernelResources shared{.shared_bytes = 32 * 1024};
    const KernelResources registers{.threads = 128, .registers_per_thread = 128};
    EXPECT_EQ(most_resident(options, slots), 6);
    EXPECT_EQ(most_resident(options, threads), 2);
    EXPECT_EQ(most_resident(options, shared), 3);
    EXPECT_EQ(most_resident(options, registers), 4);
    for (const KernelResources& r : {slots, threads, shared, registers}) {
      EXPECT_EQ(most_resident(options, r), blocks_per_sm(r, options.limits));
    }
  }
}

}  // namespace
}  // namespace tileweave::test

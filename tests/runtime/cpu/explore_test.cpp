#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <string>

#include "tests/runtime/cpu/rig.h"
#include "tileweave/runtime/cpu/explore.h"

namespace tileweave::test {
namespace {

CpuOptions explore(std::int32_t sms, std::uint64_t seed, double delay = 0.1) {
  return {.way = CpuWay::kExplore, .num_sms = sms, .seed = seed, .delay_probability = delay};
}

/// Producer and consumer over `n` tiles; returns the order of what happened.
std::string interleaving(const CpuOptions& options, std::int64_t n) {
  Rig rig(options);
  std::string log;
  std::mutex guard;  // one thread runs the blocks, but nothing orders them
  Semaphores& s = rig.semaphores(n);
  auto context = rig.context<1>(0, n);
  context.set(0, Rig::operand(s, {n}, {1}, {1}, 1));
  const auto note = [&](char what, CpuLane& lane) {
    const std::lock_guard lock(guard);
    log += what + std::to_string(lane.block_index()) + "@" + std::to_string(lane.sm_index()) + " ";
  };
  rig.queue().launch(rig.launch<1>(0, "producer", n, context, [&](CpuLane& lane, const auto& c) {
    note('P', lane);
    Cta<1> sync(c, AtomicsCpu(lane));
    if (!sync.begin_cta()) return;
    sync.signal_output(0, {lane.block_index()});
    note('p', lane);
  }));
  rig.queue().launch(on(rig.launch<1>(1, "consumer", n, context,
                                      [&](CpuLane& lane, const auto& c) {
                                        note('C', lane);
                                        Cta<1> sync(c, AtomicsCpu(lane));
                                        if (!sync.begin_cta()) return;
                                        if (!sync.wait_input(0, {n - 1 - lane.block_index()})) {
                                          return;
                                        }
                                        note('c', lane);
                                      }),
                        1));
  rig.queue().synchronize();
  EXPECT_FALSE(rig.queue().deadlock().found());
  return log;
}

TEST(Explore, SameSeedGivesTheSameInterleaving) {
  std::set<std::string> all;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::string once = interleaving(explore(7, seed), 10);
    EXPECT_EQ(once, interleaving(explore(7, seed), 10));
    all.insert(once);
  }
  EXPECT_EQ(all.size(), 24U);  // and different seeds give different ones
}

TEST(Explore, LatestAndEarliestFirstSeedsExist) {
  EXPECT_EQ(cpu::ExplorePolicy::of_seed(8).admission, cpu::AdmissionOrder::kLatestFirst);
  EXPECT_EQ(cpu::ExplorePolicy::of_seed(9).admission, cpu::AdmissionOrder::kEarliestFirst);
  EXPECT_EQ(cpu::ExplorePolicy::of_seed(10).admission, cpu::AdmissionOrder::kRandom);
}

TEST(Explore, EveryAdmissionOrderOfFourBlocksOccurs) {
  // Two launches of two blocks: 4! orders of beginning.
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const std::string log = interleaving(explore(2, seed), 2);
    std::string begun;
    for (std::size_t i = 0; i < log.size(); ++i) {
      if (log[i] == 'P' || log[i] == 'C') begun += log.substr(i, 2);
    }
    orders.insert(begun);
  }
  EXPECT_EQ(orders.size(), 24U);
}

TEST(Explore, NamesBothKernelsOfADeadlockAtOnce) {
  // One block per SM: consumers that come first fill the device, the producer fits nowhere.
  for (const std::int32_t sms : {2, 7, 132}) {
    SCOPED_TRACE(sms);
    CpuOptions options = explore(sms, 4);  // latest first
    options.limits.name = "narrow";
    options.limits.blocks_per_sm = 1;
    Rig rig(options);
    Semaphores& s = rig.semaphores(1);
    auto context = rig.context<1>(0, sms);
    context.set(0, Rig::operand(s, {1}, {1}, {1}, 1));
    rig.queue().launch(rig.launch<1>(0, "producer", 1, context, [](CpuLane& lane, const auto& c) {
      Cta<1> sync(c, AtomicsCpu(lane));
      if (!sync.begin_cta()) return;
      sync.signal_output(0, {0});
    }));
    rig.queue().launch(on(rig.launch<1>(1, "consumer", sms, context,
                                        [](CpuLane& lane, const auto& c) {
                                          Cta<1> sync(c, AtomicsCpu(lane));
                                          if (!sync.begin_cta()) return;
                                          EXPECT_FALSE(sync.wait_input(0, {0}));
                                        }),
                          1));
    const auto start = std::chrono::steady_clock::now();
    rig.queue().synchronize();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
    const Deadlock deadlock = rig.queue().deadlock();
    ASSERT_EQ(deadlock.waits.size(), static_cast<std::size_t>(sms));
    EXPECT_EQ(deadlock.waits[0].name, "consumer");
    EXPECT_EQ(deadlock.waits[0].node, 1);
    EXPECT_EQ(deadlock.waits[0].block, 0);
    EXPECT_EQ(deadlock.waits[0].site.target, 1U);
    EXPECT_EQ(deadlock.waits[0].seen, 0U);
    EXPECT_EQ(deadlock.not_admitted, std::vector<std::string>{"producer"});
    EXPECT_EQ(rig.abort_word(), 1U);
    rig.queue().synchronize();
    EXPECT_FALSE(rig.queue().deadlock().found());
  }
}

TEST(Explore, FindsADeadlockWithoutAbortWords) {
  Rig rig(explore(2, 1));
  Semaphores& s = rig.semaphores(1);
  auto context = rig.context<1>(0, 1);
  context.set(0, Rig::operand(s, {1}, {1}, {1}, 1));
  Launch launch = rig.launch<1>(
      0, "waits", 1, context,
      [](CpuLane& lane, const auto& c) {
        Cta<1> sync(c, AtomicsCpu(lane));
        if (!sync.begin_cta()) return;
        if (!sync.wait_input(0, {0})) return;
        ADD_FAILURE() << "nobody signals";
      },
      2);
  launch.abort = nullptr;
  rig.queue().launch(launch);
  rig.queue().synchronize();
  ASSERT_EQ(rig.queue().deadlock().waits.size(), 1U);
  EXPECT_EQ(rig.queue().deadlock().waits[0].name, "waits");
}

TEST(Explore, MissingBlockBarrierIsCaughtAsALaneThatNeverComes) {
  for (const CpuWay way : {CpuWay::kExplore, CpuWay::kThroughput}) {
    Rig rig({.way = way, .num_sms = 1});
    rig.queue().launch(rig.plain(
        3, "uneven", 1,
        [](CpuLane& lane) {
          if (lane.lane() == 0) lane.barrier_or(false);
        },
        2));
    try {
      rig.queue().synchronize();
      FAIL() << "synchronize() returned";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("block barrier"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tileweave::test

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <stdexcept>
#include <thread>

#include "tests/runtime/cpu/rig.h"
#include "tileweave/core/error.h"
#include "tileweave/runtime/base_update.h"
#include "tileweave/runtime/cpu/sanitizer.h"

namespace tileweave::test {
namespace {

constexpr int kMany = cpu::kTsan ? 1000 : 50000;

TEST(Throughput, RunsEveryBlockOfEveryLaunchOnce) {
  Rig rig({.num_sms = 3});
  std::vector<std::atomic<int>> runs(kMany);
  const Launch launch = rig.plain(0, "count", kMany, [&](CpuLane& lane) {
    runs[static_cast<std::size_t>(lane.block_index())].fetch_add(1, std::memory_order_relaxed);
  });
  rig.queue().launch(launch);
  rig.queue().launch(on(launch, 1));
  rig.queue().synchronize();
  for (const auto& count : runs) EXPECT_EQ(count.load(), 2);
}

TEST(Throughput, LaunchesOfOneStreamFollowOneAnother) {
  Rig rig({.num_sms = 2});
  constexpr std::size_t kBlocks = 16;
  std::vector<int> even(kBlocks, 0);
  std::vector<int> odd(kBlocks, 0);
  for (NodeId node = 0; node < 20; ++node) {
    const auto& from = node % 2 == 0 ? even : odd;
    auto& to = node % 2 == 0 ? odd : even;
    rig.queue().launch(rig.plain(node, "step", kBlocks, [&from, &to](CpuLane& lane) {
      // Reads what another block of the launch before wrote.
      const auto i = static_cast<std::size_t>(lane.block_index());
      to[i] = from[kBlocks - 1 - i] + 1;
    }));
  }
  rig.queue().synchronize();
  for (const int value : even) EXPECT_EQ(value, 20);
}

/// One lap of a chain: every node adds 1 to its predecessor's tile, block by block, over
/// semaphores, on alternating streams; two lanes a block.
void run_chain(Rig& rig, int nodes, std::int64_t tiles, int lanes) {
  std::vector<std::vector<int>> values(static_cast<std::size_t>(nodes) + 1,
                                       std::vector<int>(static_cast<std::size_t>(2 * tiles), 0));
  std::vector<Semaphores*> words;
  for (int n = 0; n < nodes; ++n) words.push_back(&rig.semaphores(tiles));
  for (int n = 0; n < nodes; ++n) {
    auto context = rig.context<2>(n, tiles);
    if (n > 0) {
      context.set(0, Rig::operand(*words[static_cast<std::size_t>(n) - 1], {tiles}, {1}, {1}, 1));
    }
    context.set(1, Rig::operand(*words[static_cast<std::size_t>(n)], {tiles}, {1}, {1}, 1));
    auto& from = values[static_cast<std::size_t>(n)];
    auto& to = values[static_cast<std::size_t>(n) + 1];
    const auto kernel = [&from, &to](CpuLane& lane, const Context<2>& c) {
      Cta<2> sync(c, AtomicsCpu(lane));
      if (!sync.begin_cta()) return;
      const std::int64_t tile = sync.remap(lane.block_index());
      if (!sync.wait_input(0, {tile})) return;
      // Each lane reads what the other lane of the producing block wrote.
      for (int half = lane.lane(); half < 2; half += lane.num_lanes()) {
        const auto at = static_cast<std::size_t>(2 * tile);
        to[at + static_cast<std::size_t>(half)] = from[at + 1 - static_cast<std::size_t>(half)] + 1;
      }
      sync.signal_output(1, {tile});
    };
    std::vector<Dependency> after;
    if (n > 0) after.push_back({n - 1, Release::kAllBegun});
    rig.queue().launch(
        on(rig.launch<2>(n, "node", tiles, context, kernel, lanes), n % 2, std::move(after)));
  }
  rig.queue().synchronize();
  for (const int value : values.back()) EXPECT_EQ(value, nodes);
}

TEST(Throughput, ChainsOverSemaphoresGiveTheRightValues) {
  for (const int lanes : {1, 2}) {
    SCOPED_TRACE(lanes);
    Rig rig({.num_sms = 3});
    run_chain(rig, 12, 20, lanes);
    EXPECT_EQ(rig.abort_word(), 0U);
  }
}

/// An SM without work begins blocks of a launch that can only wait; the others would go without.
TEST(Throughput, AnIdleSmHoldsNoMoreThanItsShareOfALaunch) {
  constexpr int kBlocks = 8;
  Rig rig({.num_sms = 2});
  Semaphores& words = rig.semaphores(1);
  std::atomic<int> begun{0};
  int begun_while_busy = -1;
  auto signals = rig.context<1>(0, 1);
  signals.set(0, Rig::operand(words, {1}, {1}, {1}));
  rig.queue().launch(
      rig.launch<1>(0, "producer", 1, signals, [&](CpuLane& lane, const Context<1>& context) {
        Cta<1> sync(context, AtomicsCpu(lane));
        if (!sync.begin_cta()) return;
        while (begun < kBlocks / 2) std::this_thread::yield();  // this SM is busy, the other is not
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        begun_while_busy = begun;
        sync.signal_output(0, {0});
      }));
  auto waits = rig.context<1>(1, kBlocks);
  waits.set(0, Rig::operand(words, {1}, {1}, {1}, 1));
  rig.queue().launch(on(rig.launch<1>(1, "consumer", kBlocks, waits,
                                      [&](CpuLane& lane, const Context<1>& context) {
                                        Cta<1> sync(context, AtomicsCpu(lane));
                                        if (!sync.begin_cta()) return;
                                        ++begun;
                                        static_cast<void>(sync.wait_input(0, {0}));
                                      }),
                        1, {{0, Release::kAllBegun}}));
  rig.queue().synchronize();
  EXPECT_EQ(begun_while_busy, kBlocks / 2);
  EXPECT_EQ(begun, kBlocks);
}

TEST(Throughput, EmptyBlocksCostLessThanTwoMicroseconds) {
  if (cpu::kTsan || cpu::kAsan) GTEST_SKIP() << "overhead is measured without sanitizers";
  Rig rig({.num_sms = 1});
  const Launch launch = rig.plain(0, "empty", kMany, [](CpuLane&) {});
  rig.queue().launch(launch);
  rig.queue().synchronize();
  const std::clock_t start = std::clock();  // CPU time: other processes may share the cores
  rig.queue().launch(launch);
  rig.queue().synchronize();
  const double ns = 1e9 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / kMany;
  RecordProperty("ns_per_empty_block", static_cast<int>(ns));
  EXPECT_LT(ns, 2000);
}

TEST(Throughput, ExceptionOfAKernelNamesNodeAndBlock) {
  for (const CpuWay way : {CpuWay::kThroughput, CpuWay::kExplore, CpuWay::kModel}) {
    Rig rig({.way = way, .num_sms = 2});
    rig.queue().launch(rig.plain(7, "fragile", 20, [](CpuLane& lane) {
      if (lane.block_index() == 13) throw std::runtime_error("no luck");
    }));
    std::atomic<int> later{0};
    rig.queue().launch(rig.plain(8, "later", 5, [&](CpuLane&) { ++later; }));
    try {
      rig.queue().synchronize();
      FAIL() << "synchronize() returned";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("node 7 `fragile`"), std::string::npos) << what;
      EXPECT_NE(what.find("block 13"), std::string::npos) << what;
      EXPECT_NE(what.find("no luck"), std::string::npos) << what;
    }
    EXPECT_EQ(later.load(), 0);  // it would have read what the failed one did not write
    EXPECT_EQ(rig.abort_word(), 1U);
    rig.queue().launch(rig.plain(9, "after", 5, [&](CpuLane&) { ++later; }));
    rig.queue().synchronize();
    EXPECT_EQ(later.load(), 5);
  }
}

TEST(Throughput, ExceptionEndsBlocksThatWaitForTheFailedOne) {
  for (const CpuWay way : {CpuWay::kThroughput, CpuWay::kExplore}) {
    Rig rig({.way = way, .num_sms = 2});
    Semaphores& s = rig.semaphores(1);
    auto context = rig.context<1>(1, 4);
    context.set(0, Rig::operand(s, {1}, {1}, {1}, 1));
    rig.queue().launch(rig.launch<1>(1, "waits", 4, context, [](CpuLane& lane, const auto& c) {
      Cta<1> sync(c, AtomicsCpu(lane));
      if (!sync.begin_cta()) return;
      if (!sync.wait_input(0, {0})) return;
      ADD_FAILURE() << "nobody signals";
    }));
    rig.queue().launch(
        on(rig.plain(2, "fails", 1, [](CpuLane&) { throw Error("sign", "a", "b"); }), 1));
    EXPECT_THROW(rig.queue().synchronize(), Error);
  }
}

TEST(Throughput, ClosingAQueueEndsBlocksThatWait) {
  for (const CpuWay way : {CpuWay::kThroughput, CpuWay::kExplore, CpuWay::kModel}) {
    Rig rig({.way = way, .num_sms = 2});
    Semaphores& s = rig.semaphores(1);
    auto context = rig.context<1>(0, 4);
    context.set(0, Rig::operand(s, {1}, {1}, {1}, 1));
    std::atomic<int> begun{0};
    const Launch waits =
        rig.launch<1>(0, "waits", 4, context, [&begun](CpuLane& lane, const auto& c) {
          Cta<1> sync(c, AtomicsCpu(lane));
          if (!sync.begin_cta()) return;
          begun.fetch_add(1, std::memory_order_relaxed);
          if (!sync.wait_input(0, {0})) return;
          ADD_FAILURE() << "nobody signals";
        });
    rig.queue().launch(waits);
    while (way == CpuWay::kThroughput && begun.load(std::memory_order_relaxed) < 4) {
      std::this_thread::yield();
    }
    rig.close_queue();
  }
}

TEST(Throughput, DeadlineOfAWaitIsKept) {
  Rig rig({.num_sms = 2});
  Semaphores& s = rig.semaphores(1);
  auto context = rig.context<1>(5, 1);
  context.set(0, Rig::operand(s, {1}, {1}, {1}, 3));
  context.header.deadline_ns = 20'000'000;
  rig.queue().launch(rig.launch<1>(5, "hangs", 1, context, [](CpuLane& lane, const auto& c) {
    Cta<1> sync(c, AtomicsCpu(lane));
    if (!sync.begin_cta()) return;
    EXPECT_FALSE(sync.wait_input(0, {0}));
  }));
  rig.queue().synchronize();
  EXPECT_EQ(rig.report().state, HangReport::kComplete);
  EXPECT_EQ(rig.report().node, 5U);
  EXPECT_EQ(rig.report().target, 3U);
}

TEST(Throughput, RecordingReplaysInOrder) {
  for (const CpuWay way : {CpuWay::kThroughput, CpuWay::kExplore, CpuWay::kModel}) {
    Rig rig({.way = way, .num_sms = 2});
    std::vector<int> a(8, 0);
    std::vector<int> b(8, 0);
    rig.queue().begin_recording();
    rig.queue().launch(rig.plain(0, "a", 8, [&](CpuLane& lane) {
      const auto i = static_cast<std::size_t>(lane.block_index());
      a[i] = b[7 - i] + 1;
    }));
    rig.queue().launch(on(rig.plain(1, "b", 8,
                                    [&](CpuLane& lane) {
                                      const auto i = static_cast<std::size_t>(lane.block_index());
                                      b[i] = 2 * a[7 - i];
                                    }),
                          1, {{0, Release::kCompleted}}));
    const auto recording = rig.queue().end_recording();
    EXPECT_EQ(a[0], 0);
    for (int i = 0; i < 10; ++i) recording->replay();
    rig.queue().synchronize();
    EXPECT_EQ(a[0], (1 << 10) - 1);  // a = 2 a + 1, ten times from 0
    EXPECT_EQ(b[3], (1 << 11) - 2);
  }
}

TEST(Throughput, CallsStandBetweenEverythingBeforeAndAfter) {
  Rig rig({.num_sms = 2});
  std::atomic<int> done{0};
  int seen = -1;
  for (NodeId n = 0; n < 2; ++n) {
    rig.queue().launch(on(rig.plain(n, "before", 30, [&](CpuLane&) { ++done; }), n));
  }
  Launch call;
  call.node = 2;
  call.name = "unintegrated";
  call.call = [&](NativeStream) { seen = done.load(); };
  rig.queue().launch(call);
  rig.queue().launch(on(rig.plain(3, "after", 1, [&](CpuLane&) { EXPECT_EQ(seen, 60); }), 1));
  rig.queue().synchronize();
  EXPECT_EQ(seen, 60);
}

TEST(Throughput, CompletedLaunchesAreCounted) {
  for (const CpuWay way : {CpuWay::kThroughput, CpuWay::kExplore}) {
    Rig rig({.way = way, .num_sms = 2});
    int value = 0;
    for (NodeId n = 0; n < 6; ++n) {
      rig.queue().launch(rig.plain(n, "step", 1, [&](CpuLane&) { ++value; }));
      if (n % 2 == 1) rig.queue().barrier();
    }
    rig.queue().wait_until_completed(2);
    EXPECT_GE(rig.queue().num_completed(), 3);
    rig.queue().synchronize();
    EXPECT_EQ(rig.queue().num_completed(), 6);
    EXPECT_EQ(value, 6);
    EXPECT_THROW(rig.queue().wait_until_completed(6), Error);
  }
}

TEST(CpuDevice, RefusesWhatItCannotRun) {
  Rig rig({.num_sms = 1});
  Launch big = rig.plain(0, "big", 1, [](CpuLane&) {});
  big.resources.shared_bytes = 1 << 20;
  try {
    rig.queue().launch(big);
    FAIL() << "launched";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("launch `big`"), std::string::npos) << error.what();
  }
  EXPECT_THROW(rig.queue().launch(on(rig.plain(1, "x", 1, [](CpuLane&) {}), 5)), Error);
  EXPECT_THROW(
      rig.queue().launch(on(rig.plain(1, "x", 1, [](CpuLane&) {}), 0, {{9, Release::kCompleted}})),
      Error);
  EXPECT_THROW(rig.device().open_queue(0), Error);
}

TEST(CpuDevice, NamesTheSizeThatItCannotAllocate) {
  const auto device = open_cpu_device();
  try {
    device->allocate(std::size_t{1} << 50);
    FAIL() << "allocated a pebibyte";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("1024"), std::string::npos) << error.what();
  }
  void* pointer = device->allocate(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % 256, 0U);
  device->release(pointer);
}

TEST(CpuDevice, UpdatesBasesWithItsOwnKernel) {
  for (const CpuWay way : {CpuWay::kThroughput, CpuWay::kExplore, CpuWay::kModel}) {
    Rig rig({.way = way, .num_sms = 2});
    std::vector<std::uint32_t> base = {4294967290U, 5, 6};
    std::vector<std::uint32_t> own = {1, 2, 3};
    std::uint32_t single = 7;
    const std::uint32_t abort = 0;
    const std::vector<BaseUpdate> entries = {
        {.base = base.data(), .targets = own.data(), .target = 0, .count = 3, .stride = 1},
        {.base = &single, .targets = nullptr, .target = 10, .count = 1, .stride = 1}};
    Launch launch;
    launch.name = kBaseUpdateKernel;
    launch.kernel = &rig.device().kernels().find(kBaseUpdateKernel);
    launch.args =
        to_bytes(BaseUpdateArgs{.entries = entries.data(), .abort = &abort, .num_entries = 2});
    EXPECT_EQ(launch.kernel->num_sync_slots, 0);
    rig.queue().launch(launch);
    rig.queue().launch(launch);
    rig.queue().synchronize();
    EXPECT_EQ(base, (std::vector<std::uint32_t>{4294967292U, 9, 12}));
    EXPECT_EQ(single, 27U);
  }
}

TEST(KernelLibrary, NamesTheKernelAndWhatItHolds) {
  KernelLibrary library;
  library.add({.name = "gemm", .cpu_lanes = 2});
  EXPECT_EQ(library.find("gemm").cpu_lanes, 2);
  library.add({.name = "gemm", .cpu_lanes = 3});
  EXPECT_EQ(library.find("gemm").cpu_lanes, 3);
  try {
    library.find("norm");
    FAIL() << "found";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("`norm`"), std::string::npos) << what;
    EXPECT_NE(what.find("`gemm`"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace tileweave::test

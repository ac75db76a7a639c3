// No wait is unbounded: deadlines, the one report, aborts, serial mode.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/sync/operands.h"
#include "tests/sync/thread_lanes.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

using testing::SingleLane;
using testing::TestDevice;
using testing::TestTensor;
using testing::ThreadGrid;
using testing::ThreadLane;

constexpr int kLanes = 2;
constexpr std::uint32_t kStart = 0U - 2;  // targets cross 2^32
constexpr std::uint64_t kMillisecond = 1000 * 1000;

/// Counts how often a report is published.
class ReportCounting : public AtomicsCpu {
 public:
  ReportCounting(ThreadLane& lane, std::atomic<int>& reports)
      : AtomicsCpu(lane), reports_(&reports) {}
  void store_release_system(std::uint32_t* word, std::uint32_t value) {
    ++*reports_;
    AtomicsCpu::store_release_system(word, value);
  }

 private:
  std::atomic<int>* reports_;
};

/// Consumers of a tensor of three data tiles whose tile 1 lacks one of its three arrivals.
class MissingArrival : public ::testing::Test {
 protected:
  MissingArrival()
      : input_({6, 3}, {2, 3}, {2, 1}, kStart), output_({6, 3}, {2, 3}, {2, 3}, kStart) {
    for (std::size_t t = 0; t < 3; ++t) input_.words[t] += t == 1 ? 2 : 3;
  }
  SyncContext<2> context(std::uint64_t deadline_ns, std::uint32_t flags = 0) {
    SyncContext<2> c{};
    c.header = device_.header(7, 3, deadline_ns);
    c.header.flags = flags | SyncHeader::kWaits;
    c.set(0, input_.operand(consumer_));
    c.set(1, output_.operand(consumer_));
    return c;
  }
  /// `num_blocks` blocks take the works of `consumer_` in turn; returns how many blocks went
  /// through.
  int run(const SyncContext<2>& context, int num_blocks) {
    std::atomic<int> through{0};
    ThreadGrid(num_blocks, kLanes, [&](ThreadLane& lane) {
      SyncCta<ReportCounting, 2> sync(context, ReportCounting(lane, reports_));
      if (!sync.begin_cta()) return;
      const Coord tile = consumer_.coord(lane.block_index() % consumer_.count());
      if (!sync.wait_input(0, tile)) return;
      if (lane.lane() == 0) ++through;
      sync.signal_output(1, tile);
    }).join();
    return through;
  }

  TestTensor input_;
  TestTensor output_;
  Tiling consumer_{{6, 3}, {2, 3}};
  TestDevice device_;
  std::atomic<int> reports_{0};
};

TEST_F(MissingArrival, EndsWithExactlyOneReportThatNamesTheWait) {
  run(context(30 * kMillisecond), 9);  // blocks 1, 4 and 7 meet tile 1
  EXPECT_EQ(reports_, 1);
  EXPECT_EQ(device_.abort, 1U);
  const HangReport& report = device_.report;
  EXPECT_EQ(report.state, HangReport::kComplete);
  EXPECT_EQ(report.kind, static_cast<std::uint32_t>(WaitKind::kSemaphore));
  EXPECT_EQ(report.node, 7U);
  EXPECT_EQ(report.rank, 3U);
  EXPECT_EQ(report.operand, 0U);
  EXPECT_EQ(report.tile, 1U);
  EXPECT_EQ(report.seen, kStart + 2);
  EXPECT_EQ(report.base, kStart);
  EXPECT_EQ(report.target, 3U);
  EXPECT_EQ(report.block % 3, 1U);
  EXPECT_EQ(report.sm, report.block % 7);
  EXPECT_GT(report.waited_ns, 30 * kMillisecond);
  EXPECT_LT(report.waited_ns, 30 * kMillisecond + 10000 * kMillisecond);
}

TEST_F(MissingArrival, LetsNoAbortedBlockSignal) {
  run(context(10 * kMillisecond), 9);
  EXPECT_EQ(output_.words[1], kStart) << "the tile behind the missing arrival stays silent";
}

TEST_F(MissingArrival, TurnsLaterBlocksAwayAtTheirStart) {
  run(context(10 * kMillisecond), 3);
  const std::vector<std::uint32_t> before = output_.words;
  input_.words[1] += 1;  // too late
  EXPECT_EQ(run(context(10 * kMillisecond), 3), 0);
  EXPECT_EQ(output_.words, before);
  EXPECT_EQ(reports_, 1);
}

TEST_F(MissingArrival, TurnsLaterBlocksAwayEvenWhereTheirTilesAreComplete) {
  run(context(10 * kMillisecond), 3);
  const std::vector<std::uint32_t> before = output_.words;
  input_.words[1] += 1;
  SyncContext<2> eager = context(10 * kMillisecond);
  eager.header.flags = 0;  // a kernel that learns of the abort before its first wait
  EXPECT_EQ(run(eager, 3), 0);
  EXPECT_EQ(output_.words, before);
}

TEST_F(MissingArrival, LeavesWithoutAReportWhenTheHostAborts) {
  std::atomic_ref<std::uint32_t> abort(device_.abort);
  std::thread host([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    abort.store(1);
  });
  const auto begin = std::chrono::steady_clock::now();
  run(context(0), 3);  // no deadline: only the abort word can end this
  host.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(reports_, 0);
  EXPECT_EQ(device_.report.state, HangReport::kEmpty);
  EXPECT_EQ(output_.words[1], kStart);
}

TEST_F(MissingArrival, GoesThroughWhenTheArrivalComesBeforeTheDeadline) {
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    SingleLane lane;
    AtomicsCpu(lane).add_release(&input_.words[1], 1, false);
  });
  EXPECT_EQ(run(context(10000 * kMillisecond), 3), 3);
  late.join();
  EXPECT_EQ(reports_, 0);
  EXPECT_EQ(device_.abort, 0U);
}

TEST_F(MissingArrival, IsReportedAtOnceInSerialMode) {
  const auto begin = std::chrono::steady_clock::now();
  run(context(10000 * kMillisecond, SyncHeader::kAssertReady), 3);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(reports_, 1);
  EXPECT_EQ(device_.report.state, HangReport::kComplete);
  EXPECT_EQ(device_.report.tile, 1U);
  EXPECT_EQ(device_.report.waited_ns, 0U);
}

TEST_F(MissingArrival, SerialModeAcceptsWaitsThatAreSatisfied) {
  input_.words[1] += 1;
  EXPECT_EQ(run(context(10 * kMillisecond, SyncHeader::kAssertReady), 3), 3);
  EXPECT_EQ(reports_, 0);
}

TEST(BoundedWait, ReportsOnlyTheFirstOfTwoFaults) {
  TestDevice device;
  device.abort = 1;  // somebody else was first
  SingleLane lane;
  AtomicsCpu atomics(lane);
  report_hang(atomics, WaitSite{}, 5, 6, device.header(0, 1));
  EXPECT_EQ(device.report.state, HangReport::kEmpty);
}

TEST(BoundedWait, DoesNotLookAtTheAbortOfAWaitThatIsSatisfied) {
  TestDevice device;
  device.abort = 1;
  const std::uint32_t word = 4;
  SingleLane lane;
  AtomicsCpu atomics(lane);
  const WaitSite site{.base = 1, .target = 3};
  EXPECT_TRUE(wait_word(atomics, &word, site, device.header(0, 1)));
}

}  // namespace
}  // namespace tileweave

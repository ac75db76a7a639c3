// SyncCta on real threads: many runs across the wrap, extents, counters.
#include "tileweave/sync/sync_cta.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

#include "tests/sync/operands.h"
#include "tests/sync/thread_lanes.h"
#include "tests/tile/brute_force.h"
#include "tileweave/sync/atomics_cpu.h"

namespace tileweave {
namespace {

using testing::SingleLane;
using testing::TestDevice;
using testing::TestTensor;
using testing::ThreadGrid;
using testing::ThreadLane;

constexpr std::uint32_t kNear31 = (std::uint32_t{1} << 31) - 4;
constexpr std::uint32_t kNear32 = 0U - 4;
constexpr int kLanes = 2;

std::int64_t value_of(int run, std::size_t element) {
  return run * 1000 + static_cast<std::int64_t>(element);
}

/// Calls visit(element number) for this lane's share of a box.
template <class Visit>
void for_my_share(const ThreadLane& lane, const TestTensor& tensor, const Box& box, Visit visit) {
  int turn = 0;
  testing::for_each_element(box, [&](const Coord& element) {
    if (turn++ % lane.num_lanes() == lane.lane()) visit(tensor.at(element));
  });
}

/// Writes every element of its kernel tiles, signals, and ends.
ThreadGrid start_producer(TestTensor& tensor, TestDevice& device, int run, std::uint32_t node) {
  SyncContext<1> context{};
  context.header = device.header(node, tensor.producer.count());
  context.set(0, tensor.operand(tensor.producer));
  return {static_cast<int>(tensor.producer.count()), kLanes,
          [&tensor, context, run](ThreadLane& lane) {
            SyncCta<AtomicsCpu, 1> sync(context, AtomicsCpu(lane));
            if (!sync.begin_cta()) return;
            const Coord tile = tensor.producer.coord(sync.remap(lane.block_index()));
            for_my_share(lane, tensor, tensor.producer.box(tile),
                         [&](std::size_t e) { tensor.values[e] = value_of(run, e); });
            sync.signal_output(0, tile);
          }};
}

void expect_counts_equal_targets(const TestTensor& tensor) {
  for (std::size_t t = 0; t < tensor.words.size(); ++t) {
    EXPECT_EQ(tensor.words[t] - tensor.base[t], tensor.target(static_cast<std::int64_t>(t)))
        << "tile " << t;
  }
}

/// Two producers of differently cut tensors, a consumer of both, a consumer of that: all at once.
void run_diamond_across(std::uint32_t start_count) {
  TestTensor a({5, 6}, {2, 4}, {2, 5}, start_count);
  TestTensor b({5, 3}, {3, 3}, {1, 3}, start_count);
  TestTensor z({5, 2}, {1, 2}, {2, 1}, start_count);
  const Tiling read_a{{5, 6}, {2, 6}};  // kernel tiles of the consumer of a and b
  const Tiling read_b{{5, 3}, {5, 3}};
  const Tiling read_z{{5, 2}, {3, 2}};
  TestDevice device;
  std::atomic<int> wrong_reads{0};
  for (int run = 1; run <= 8; ++run) {
    SyncContext<3> join{};
    join.header = device.header(2, z.producer.count());
    join.header.flags = SyncHeader::kWaits;
    join.set(0, a.operand(read_a));
    join.set(1, b.operand(read_b));
    join.set(2, z.operand(z.producer));
    SyncContext<1> last{};
    last.header = device.header(3, read_z.count());
    last.header.flags = SyncHeader::kWaits;
    last.set(0, z.operand(read_z));
    // Consumers first: they must wait, not find everything ready.
    ThreadGrid d(static_cast<int>(read_z.count()), kLanes, [&, run](ThreadLane& lane) {
      SyncCta<AtomicsCpu, 1> sync(last, AtomicsCpu(lane));
      if (!sync.begin_cta()) return;
      const Coord tile = read_z.coord(lane.block_index());
      if (!sync.wait_input(0, tile)) return;
      testing::for_each_element(read_z.box(tile), [&](const Coord& element) {
        if (z.values[z.at(element)] != value_of(run, z.at(element))) ++wrong_reads;
      });
    });
    ThreadGrid c(static_cast<int>(z.producer.count()), kLanes, [&, run](ThreadLane& lane) {
      SyncCta<AtomicsCpu, 3> sync(join, AtomicsCpu(lane));
      if (!sync.begin_cta()) return;
      const Coord tile = z.producer.coord(lane.block_index());
      if (!sync.wait_input(0, {tile[0]})) return;
      if (!sync.wait_input(1, {0})) return;
      testing::for_each_element(read_a.box({tile[0]}), [&](const Coord& element) {
        if (a.values[a.at(element)] != value_of(run, a.at(element))) ++wrong_reads;
      });
      testing::for_each_element(read_b.box({0}), [&](const Coord& element) {
        if (b.values[b.at(element)] != value_of(run, b.at(element))) ++wrong_reads;
      });
      for_my_share(lane, z, z.producer.box(tile),
                   [&](std::size_t e) { z.values[e] = value_of(run, e); });
      sync.signal_output(2, tile);
    });
    ThreadGrid pb = start_producer(b, device, run, 1);
    ThreadGrid pa = start_producer(a, device, run, 0);
    for (ThreadGrid* grid : {&pa, &pb, &c, &d}) grid->join();
    for (TestTensor* tensor : {&a, &b, &z}) {
      expect_counts_equal_targets(*tensor);
      tensor->end_run();
    }
  }
  EXPECT_EQ(wrong_reads, 0);
  EXPECT_EQ(device.abort, 0U);
}

TEST(SyncCta, RunsADiamondEightTimesFromZero) {
  run_diamond_across(0);
}
TEST(SyncCta, RunsADiamondAcrossTwoToThe31) {
  run_diamond_across(kNear31);
}
TEST(SyncCta, RunsADiamondAcrossTwoToThe32) {
  run_diamond_across(kNear32);
}

TEST(SyncCta, ReachedIsTheSignedDistanceModuloTwoToThe32) {
  static_assert(reached(5, 3, 2));
  static_assert(!reached(4, 3, 2));
  static_assert(reached(0x80000001U, 0x7fffffffU, 2));
  static_assert(!reached(0x80000000U, 0x7fffffffU, 2));
  static_assert(reached(1, 0xffffffffU, 2));
  static_assert(!reached(0, 0xffffffffU, 2));
  static_assert(!reached(0xffffffffU, 0xffffffffU, 2));
  static_assert(reached(0xffffffffU, 0xffffffffU, 0));
  static_assert(!reached(7, 7, 0x7fffffffU));
}

/// Notes which lane touched which word.
struct Touches {
  std::mutex mutex;
  std::set<std::pair<int, std::int64_t>> signals;  // lane, word
  std::set<std::pair<int, std::int64_t>> polls;
};
class NotingAtomics : public AtomicsCpu {
 public:
  NotingAtomics(ThreadLane& lane, const std::uint32_t* words, Touches& touches)
      : AtomicsCpu(lane), words_(words), touches_(&touches) {}
  std::uint32_t load_acquire(const std::uint32_t* word, bool system_scope) {
    const std::lock_guard lock(touches_->mutex);
    touches_->polls.emplace(lane(), word - words_);
    return AtomicsCpu::load_acquire(word, system_scope);
  }
  void add_release(std::uint32_t* word, std::uint32_t n, bool system_scope) {
    {
      const std::lock_guard lock(touches_->mutex);
      touches_->signals.emplace(lane(), word - words_);
    }
    AtomicsCpu::add_release(word, n, system_scope);
  }

 private:
  const std::uint32_t* words_;
  Touches* touches_;
};

TEST(SyncCta, OneLanePollsAndOneSignalsEachDataTileOfAnExtent) {
  // One kernel tile over five data tiles, in a block of three lanes.
  const Tiling kernel{{10}, {10}};
  TestTensor tensor({10}, {2}, {10}, kNear32);
  TestDevice device;
  Touches touches;
  SyncContext<1> context{};
  context.header = device.header(0, 1);
  context.set(0, tensor.operand(kernel));
  ThreadGrid(1, 3, [&](ThreadLane& lane) {
    SyncCta<NotingAtomics, 1> sync(context, NotingAtomics(lane, tensor.words.data(), touches));
    ASSERT_TRUE(sync.begin_cta());
    sync.signal_output(0, {0});
    ASSERT_TRUE(sync.wait_input(0, {0}));
  }).join();
  const std::set<std::pair<int, std::int64_t>> expected = {{0, 0}, {1, 1}, {2, 2}, {0, 3}, {1, 4}};
  EXPECT_EQ(touches.signals, expected);
  EXPECT_EQ(touches.polls, expected);
  expect_counts_equal_targets(tensor);
}

TEST(SyncCta, HonoursWordStrideSharedBaseAndStamps) {
  const Tiling kernel{{6, 4}, {3, 2}};
  const Tiling data{{6, 4}, {2, 4}};
  std::vector<std::uint32_t> words(3 * 8, kNear31);
  const std::uint32_t base = kNear31;
  std::vector<std::uint32_t> stamps(4, 0);
  TestDevice device;
  SyncContext<1> context{};
  context.header = device.header(0, 4);
  OperandSlot op = testing::plain_operand(kernel, data, kernel);
  op.sync.words = words.data();
  op.tiles.word_stride = 8;
  op.sync.base = &base;
  op.tiles.base_stride = 0;
  op.sync.stamps = stamps.data();
  context.set(0, op);
  ThreadGrid(4, kLanes, [&](ThreadLane& lane) {
    SyncCta<AtomicsCpu, 1> sync(context, AtomicsCpu(lane));
    ASSERT_TRUE(sync.begin_cta());
    sync.signal_output(0, kernel.coord(lane.block_index()));
    ASSERT_TRUE(sync.wait_input(0, kernel.coord(lane.block_index())));
  }).join();
  EXPECT_EQ(stamps, (std::vector<std::uint32_t>{1, 1, 1, 1}));
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint32_t arrivals = i == 0 || i == 16 ? 2 : i == 8 ? 4 : 0;
    EXPECT_EQ(words[i] - kNear31, arrivals) << "word " << i;
  }
}

TEST(SyncCta, OperandsWithoutWordsNeitherWaitNorSignal) {
  TestDevice device;
  SyncContext<1> context{};
  context.header = device.header(0, 1);
  SingleLane lane;
  SyncCta<AtomicsCpu, 1> sync(context, AtomicsCpu(lane));
  ASSERT_TRUE(sync.begin_cta());
  EXPECT_TRUE(sync.wait_input(0, {0}));
  sync.signal_output(0, {0});
}

TEST(SyncCta, RemapTakesWorksAsTheHostOrderSays) {
  const TileOrder orders[] = {TileOrder::identity(), TileOrder::rotation(3),
                              TileOrder::table({4, 2, 0, 1, 3})};
  for (const TileOrder& order : orders) {
    TestDevice device;
    SyncContext<1> context{};
    context.header = device.header(0, 5);
    context.header.order_form = order.form();
    context.header.order_offset = order.offset();
    context.header.order = order.works().data();
    for (std::int64_t p = 0; p < 5; ++p) {
      SingleLane lane(p);
      SyncCta<AtomicsCpu, 1> sync(context, AtomicsCpu(lane));
      EXPECT_EQ(sync.remap(p), order.at(p, 5)) << "position " << p;
    }
  }
}

TEST(SyncCta, CountsEveryBlockThatBegins) {
  TestDevice device;
  std::uint32_t begun = kNear32;
  SyncContext<1> context{};
  context.header = device.header(0, 5);
  context.header.begun = &begun;
  context.header.flags = SyncHeader::kCountBegun;
  ThreadGrid(5, kLanes, [&](ThreadLane& lane) {
    SyncCta<AtomicsCpu, 1> sync(context, AtomicsCpu(lane));
    sync.begin_cta();
  }).join();
  EXPECT_EQ(begun - kNear32, 5U);
}

TEST(SyncCta, ProgrammaticBlocksTriggerOnceAndWaitBeforeTheyTouchAnything) {
  TestDevice device;
  SyncContext<1> context{};
  context.header = device.header(0, 1);
  context.header.flags = SyncHeader::kProgrammaticConsumer | SyncHeader::kProgrammaticProducer;
  {
    SingleLane lane;
    SyncCta<AtomicsCpu, 1> sync(context, AtomicsCpu(lane));
    ASSERT_TRUE(sync.begin_cta());
    EXPECT_EQ(lane.launched_dependents, 1);
    EXPECT_EQ(lane.grid_waits, 0) << "the prologue may run before the wait";
    ASSERT_TRUE(sync.wait_input(0, {0}));
    EXPECT_EQ(lane.grid_waits, 1);
    sync.signal_output(0, {0});
    EXPECT_GE(lane.grid_waits, 1) << "waiting again is allowed and returns at once";
  }
  {
    SingleLane lane;
    SyncCta<AtomicsCpu, 1> sync(context, AtomicsCpu(lane));
    ASSERT_TRUE(sync.begin_cta());
    sync.signal_output(0, {0});
    EXPECT_EQ(lane.grid_waits, 1) << "a signal is a touch";
  }
  {
    device.abort = 1;
    SingleLane lane;
    SyncCta<AtomicsCpu, 1> sync(context, AtomicsCpu(lane));
    EXPECT_FALSE(sync.begin_cta());
    EXPECT_EQ(lane.grid_waits, 1) << "an aborted block waits too before it returns";
  }
}

TEST(SyncCta, ProgrammaticBlockThatClaimsNothingWaitsBeforeItReturns) {
  TestDevice device;
  std::uint32_t queue = 0;
  const std::uint32_t base = 0;
  SyncContext<1> context{};
  context.header = device.header(0, 1);
  context.header.flags = SyncHeader::kProgrammaticConsumer;
  context.header.counter = {&queue, &base, 0};
  SingleLane lane;
  SyncCta<AtomicsCpu, 1> sync(context, AtomicsCpu(lane));
  ASSERT_TRUE(sync.begin_cta());
  EXPECT_EQ(sync.claim(), 0);
  EXPECT_EQ(lane.grid_waits, 0) << "a claimed work waits where it touches produced data";
  EXPECT_EQ(sync.claim(), -1);
  EXPECT_EQ(lane.grid_waits, 1);
}

void claim_across(std::uint32_t start_count) {
  constexpr int kWorks = 23;
  constexpr int kBlocks = 4;
  TestDevice device;
  std::uint32_t queue = start_count;
  std::uint32_t base = start_count;
  SyncContext<1> context{};
  context.header = device.header(0, kWorks);
  context.header.counter = {&queue, &base, 0};
  for (int run = 0; run < 4; ++run) {
    std::array<std::atomic<int>, kWorks> taken{};
    ThreadGrid(kBlocks, kLanes, [&](ThreadLane& lane) {
      SyncCta<AtomicsCpu, 1> sync(context, AtomicsCpu(lane));
      ASSERT_TRUE(sync.begin_cta());
      for (std::int64_t p = sync.claim(); p >= 0; p = sync.claim()) {
        ASSERT_LT(p, kWorks);
        ++taken[static_cast<std::size_t>(p)];
      }
    }).join();
    for (int p = 0; p < kWorks; ++p) {
      EXPECT_EQ(taken[static_cast<std::size_t>(p)], kLanes) << "position " << p << ", run " << run;
    }
    EXPECT_EQ(queue - base, std::uint32_t{kWorks} + kBlocks) << "one vain claim per block";
    base += kWorks + kBlocks;
  }
}

TEST(SyncCta, ClaimWalksEachPositionOnceAcrossTheWrap) {
  for (const std::uint32_t start : {0U, kNear31, kNear32}) claim_across(start);
}

TEST(SyncCta, ArriveLastIsTrueForExactlyOneWorkWhichSeesAllPartials) {
  constexpr int kSplits = 5;
  constexpr int kSlots = 2;
  for (const std::uint32_t start : {0U, kNear31, kNear32}) {
    TestDevice device;
    std::vector<std::uint32_t> words(kSlots, start);
    std::vector<std::uint32_t> base(kSlots, start);
    std::vector<std::int64_t> partials(kSlots * kSplits * kLanes, 0);
    SyncContext<1> context{};
    context.header = device.header(0, kSlots * kSplits);
    context.header.counter = {words.data(), base.data(), 1};
    for (int run = 1; run <= 4; ++run) {
      std::atomic<int> lasts{0};
      std::atomic<int> wrong{0};
      ThreadGrid(kSlots * kSplits, kLanes, [&](ThreadLane& lane) {
        SyncCta<AtomicsCpu, 1> sync(context, AtomicsCpu(lane));
        ASSERT_TRUE(sync.begin_cta());
        const std::int64_t slot = lane.block_index() % kSlots;
        const std::int64_t split = lane.block_index() / kSlots;
        const auto at = [&](std::int64_t s, int l) {
          return static_cast<std::size_t>((slot * kSplits + s) * kLanes + l);
        };
        partials[at(split, lane.lane())] = run;
        if (!sync.arrive_last(slot, kSplits)) return;
        ++lasts;
        for (std::int64_t s = 0; s < kSplits; ++s) {
          for (int l = 0; l < kLanes; ++l) {
            if (partials[at(s, l)] != run) ++wrong;
          }
        }
      }).join();
      EXPECT_EQ(lasts, kSlots * kLanes) << "every lane of one work per slot; run " << run;
      EXPECT_EQ(wrong, 0);
      for (std::uint32_t& b : base) b += kSplits;
    }
  }
}

}  // namespace
}  // namespace tileweave

// What blocks leave in the trace ring.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/sync/operands.h"
#include "tests/sync/thread_lanes.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

using testing::TestDevice;
using testing::TestTensor;
using testing::ThreadGrid;
using testing::ThreadLane;

constexpr int kLanes = 2;

class TraceRecords : public ::testing::Test {
 protected:
  TraceRecords() : tensor_({8}, {2}, {2}, 0), records_(16) {}
  SyncContext<1> context(std::uint32_t capacity) {
    SyncContext<1> c{};
    c.header = device_.header(5, 4);
    c.header.records = records_.data();
    c.header.num_records = &num_records_;
    c.header.record_capacity = capacity;
    c.set(0, tensor_.operand(tensor_.producer));
    return c;
  }
  static void expect_in_order(const TileRecord& r) {
    EXPECT_EQ(r.node, 5U);
    EXPECT_EQ(r.rank, 3U);
    EXPECT_GT(r.begin_ns, 0U);
    EXPECT_GE(r.wait_ns, r.begin_ns);
    EXPECT_GE(r.ready_ns, r.wait_ns);
    EXPECT_GE(r.end_ns, std::max(r.ready_ns, r.signal_ns));
  }

  TestTensor tensor_;
  std::vector<TileRecord> records_;
  std::uint32_t num_records_ = 0;
  TestDevice device_;
};

TEST_F(TraceRecords, HoldOneRecordPerBlock) {
  const SyncContext<1> c = context(16);
  ThreadGrid(4, kLanes, [&](ThreadLane& lane) {
    SyncCta<AtomicsCpu, 1> sync(c, AtomicsCpu(lane));
    ASSERT_TRUE(sync.begin_cta());
    const std::int64_t work = sync.remap(3 - lane.block_index());
    sync.signal_output(0, {work});
    ASSERT_TRUE(sync.wait_input(0, {work}));
  }).join();
  ASSERT_EQ(num_records_, 4U);
  std::vector<std::uint32_t> works;
  for (std::size_t i = 0; i < 4; ++i) {
    expect_in_order(records_[i]);
    EXPECT_GE(records_[i].signal_ns, records_[i].begin_ns);
    EXPECT_EQ(records_[i].sm, 3 - records_[i].work) << "the block that took the work";
    works.push_back(records_[i].work);
  }
  std::sort(works.begin(), works.end());
  EXPECT_EQ(works, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST_F(TraceRecords, HoldOneRecordPerWorkOfAPersistentBlock) {
  const SyncContext<1> c = context(16);
  ThreadGrid(1, kLanes, [&](ThreadLane& lane) {
    SyncCta<AtomicsCpu, 1> sync(c, AtomicsCpu(lane));
    ASSERT_TRUE(sync.begin_cta());
    for (std::int64_t p = 0; p < 4; ++p) {
      const std::int64_t work = sync.remap(p);
      sync.signal_output(0, {work});
      ASSERT_TRUE(sync.wait_input(0, {work}));
    }
  }).join();
  ASSERT_EQ(num_records_, 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    expect_in_order(records_[i]);
    EXPECT_EQ(records_[i].work, i);
    if (i > 0) {
      EXPECT_GE(records_[i].begin_ns, records_[i - 1].end_ns);
    }
  }
}

TEST_F(TraceRecords, AreDroppedButCountedWhenTheRingIsFull) {
  const SyncContext<1> c = context(2);
  ThreadGrid(4, kLanes, [&](ThreadLane& lane) {
    SyncCta<AtomicsCpu, 1> sync(c, AtomicsCpu(lane));
    ASSERT_TRUE(sync.begin_cta());
    sync.signal_output(0, {lane.block_index()});
  }).join();
  EXPECT_EQ(num_records_, 4U);
  EXPECT_GT(records_[1].begin_ns, 0U);
  EXPECT_EQ(records_[2].begin_ns, 0U) << "nothing is written behind the capacity";
}

TEST_F(TraceRecords, KeepAWaitThatWasGivenUp) {
  SyncContext<1> c = context(16);
  c.header.deadline_ns = 1000 * 1000;
  ThreadGrid(1, kLanes, [&](ThreadLane& lane) {
    SyncCta<AtomicsCpu, 1> sync(c, AtomicsCpu(lane));
    ASSERT_TRUE(sync.begin_cta());
    EXPECT_FALSE(sync.wait_input(0, {0}));
  }).join();
  ASSERT_EQ(num_records_, 1U);
  EXPECT_GT(records_[0].wait_ns, 0U);
  EXPECT_EQ(records_[0].ready_ns, 0U) << "record.h: a wait that was given up has no ready time";
  EXPECT_EQ(records_[0].signal_ns, 0U);
}

}  // namespace
}  // namespace tileweave

#include "tileweave/plan/resources.h"

#include <gtest/gtest.h>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

TEST(Resources, OccupancyOfAnH200IsWhatTheGuideSays) {
  const DeviceLimits device = h200_limits();
  const struct {
    KernelResources block;
    std::int32_t blocks;
  } cases[] = {
      {{.threads = 256, .registers_per_thread = 32, .shared_bytes = 0}, 8},          // warps
      {{.threads = 32, .registers_per_thread = 16, .shared_bytes = 0}, 32},          // slots
      {{.threads = 256, .registers_per_thread = 128, .shared_bytes = 0}, 2},         // registers
      {{.threads = 384, .registers_per_thread = 168, .shared_bytes = 0}, 1},         // registers
      {{.threads = 256, .registers_per_thread = 64, .shared_bytes = 75 * 1024}, 3},  // shared
      {{.threads = 256, .registers_per_thread = 64, .shared_bytes = 76 * 1024}, 2},  // reserved KiB
      {{.threads = 128, .registers_per_thread = 32, .shared_bytes = 227 * 1024}, 1},
      {{.threads = 1024, .registers_per_thread = 64, .shared_bytes = 0}, 1},
      {{.threads = 1, .registers_per_thread = 1, .shared_bytes = 1}, 32},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(blocks_per_sm(c.block, device), c.blocks)
        << c.block.threads << " threads, " << c.block.registers_per_thread << " registers, "
        << c.block.shared_bytes << " bytes";
    EXPECT_EQ(why_no_fit(c.block, device), "");
  }
}

TEST(Resources, RegistersAreDealtToSubPartitions) {
  // 224 registers a thread are 7168 a warp: two warps in each of four sub-partitions.
  const KernelResources nine_warps{.threads = 288, .registers_per_thread = 224};
  EXPECT_EQ(blocks_per_sm(nine_warps, h200_limits()), 0);
  EXPECT_EQ(why_no_fit(nine_warps, h200_limits()),
            "a block needs 86016 registers, the device allows 65536");
  const KernelResources eight_warps{.threads = 256, .registers_per_thread = 224};
  EXPECT_EQ(blocks_per_sm(eight_warps, h200_limits()), 1);
}

TEST(Resources, SaysWhyABlockFitsNoSm) {
  const DeviceLimits device = h200_limits();
  EXPECT_EQ(why_no_fit({.threads = 1025}, device),
            "a block has 1025 threads, the device allows 1024");
  EXPECT_EQ(why_no_fit({.threads = 32, .shared_bytes = 232449}, device),
            "a block needs 232449 bytes of shared memory, the device allows 232448");
  EXPECT_EQ(why_no_fit({.threads = 1024, .registers_per_thread = 65}, device),
            "a block needs 73728 registers, the device allows 65536");
  DeviceLimits small = device;
  small.threads_per_sm = 512;
  EXPECT_EQ(why_no_fit({.threads = 600}, small),
            "a block has 608 threads in whole warps, an SM 512");
  small = device;
  small.shared_bytes_per_sm = 100 * 1024;
  EXPECT_EQ(why_no_fit({.threads = 32, .shared_bytes = 100 * 1024}, small),
            "a block takes 103424 bytes of shared memory with the reserved part, an SM has 102400");
  small = device;
  small.registers_per_sm = 32768;
  EXPECT_EQ(why_no_fit({.threads = 512, .registers_per_thread = 128}, small),
            "a block has 16 warps, the registers of an SM serve 8 of them");
  small.blocks_per_sm = 0;
  EXPECT_EQ(why_no_fit({.threads = 32}, small), "an SM has no slot for a block");
}

TEST(Resources, FootprintsAreInAllocationUnits) {
  const KernelResources block{.threads = 288, .registers_per_thread = 168, .shared_bytes = 1000};
  const BlockFootprint exact = footprint(block, h200_limits());
  EXPECT_EQ(exact.threads, 288);
  EXPECT_EQ(exact.registers, 9 * 5376);
  EXPECT_EQ(exact.shared_bytes, 2048);
  EXPECT_EQ(exact.slots, 1);
  const BlockFootprint bound = footprint_bound(block, h200_limits());
  EXPECT_EQ(bound.threads, 384);
  EXPECT_EQ(bound.registers, 12 * 5376);
  EXPECT_EQ(bound.shared_bytes, 2048);
}

TEST(Resources, APartitionHasFewerSmsOfTheSameKind) {
  const DeviceLimits eight = partition(h200_limits(), 8);
  EXPECT_EQ(eight.num_sms, 8);
  EXPECT_EQ(eight.registers_per_sm, h200_limits().registers_per_sm);
  try {
    partition(h200_limits(), 133);
    FAIL() << "133 of 132 SMs";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "partition of H200: between 1 and 132 SMs, got 133");
  }
}

}  // namespace
}  // namespace tileweave

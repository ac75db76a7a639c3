#include "tileweave/plan/residency.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <random>

#include "tests/plan/chain_plans.h"

namespace tileweave::testing {
namespace {

TEST(Residency, OneKernelIsCountedExactly) {
  Residency residency(h200_limits());
  EXPECT_EQ(residency.blocked_sms(kDeepRing, {{kDeepRing, 131}}), 131);
  EXPECT_EQ(residency.blocked_sms(kDeepRing, {{kDeepRing, 5000}}), 132);
  EXPECT_EQ(residency.blocked_sms(kHalfSm, {{kHalfSm, 263}}), 131);
  EXPECT_EQ(residency.blocked_sms(kHalfSm, {{kHalfSm, 200}, {kHalfSm, 63}}), 131);
  EXPECT_EQ(residency.blocked_sms({.threads = 32}, {{kDeepRing, 5000}}), 0);
  EXPECT_EQ(residency.blocks_to_block(kHalfSm, kHalfSm), 2);
  EXPECT_EQ(residency.blocks_to_block(kDeepRing, kHalfSm), 1);
  EXPECT_EQ(residency.blocks_to_block({.threads = 32}, kDeepRing), 0);
}

TEST(Residency, TwoKernelsThatBlockTogetherAreWeighed) {
  // Of 3 slots a block needs one: 3 of the others block, in any mix.
  Residency residency(DeviceLimits{.name = "slots", .num_sms = 10, .blocks_per_sm = 3});
  const KernelResources small{.threads = 32};
  const KernelResources large{.threads = 64};
  EXPECT_EQ(residency.blocked_sms(small, {{small, 7}, {large, 7}}), 4);
  EXPECT_EQ(residency.blocked_sms(small, {{small, 14}, {large, 14}}), 9);
}

/// Largest number of SMs that the crowds can block, by trying every way to spread them.
class Spread {
 public:
  Spread(const DeviceLimits& device, const KernelResources& need, std::vector<Crowd> crowds)
      : device_(device), need_(footprint(need, device)), crowds_(std::move(crowds)) {
    for (const Crowd& crowd : crowds_) {
      left_.push_back(crowd.blocks);
      takes_.push_back(footprint(crowd.resources, device));
    }
  }

  int most_blocked(int num_sms) {
    if (num_sms == 0) return 0;
    int best = 0;
    fill(num_sms, 0, BlockFootprint{.slots = 0}, best);
    return best;
  }

 private:
  static BlockFootprint sum(const BlockFootprint& a, const BlockFootprint& b) {
    return {a.threads + b.threads, a.registers + b.registers, a.shared_bytes + b.shared_bytes,
            a.slots + b.slots};
  }
  bool fits(const BlockFootprint& f) const {
    return f.threads <= device_.threads_per_sm && f.registers <= device_.registers_per_sm &&
           f.shared_bytes <= device_.shared_bytes_per_sm && f.slots <= device_.blocks_per_sm;
  }
  void fill(int num_sms, std::size_t kind, const BlockFootprint& taken, int& best) {
    if (kind == crowds_.size()) {
      const int here = fits(sum(taken, need_)) ? 0 : 1;
      best = std::max(best, here + most_blocked(num_sms - 1));
      return;
    }
    BlockFootprint with = taken;
    const std::int64_t left = left_[kind];
    for (std::int64_t count = 0; count <= left && fits(with); ++count) {
      left_[kind] = left - count;
      fill(num_sms, kind + 1, with, best);
      with = sum(with, takes_[kind]);
    }
    left_[kind] = left;
  }

  DeviceLimits device_;
  BlockFootprint need_;
  std::vector<Crowd> crowds_;
  std::vector<std::int64_t> left_;
  std::vector<BlockFootprint> takes_;
};

TEST(Residency, BoundsEverySpreadOfBlocks) {
  std::array<int, 5> cases = {};
  std::array<int, 5> exact = {};
  std::array<int, 5> needless = {};  // says that all SMs can be blocked, and they cannot
  for (std::uint32_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto pick = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    const DeviceLimits device{.name = "tiny",
                              .num_sms = pick(1, 3),
                              .threads_per_sm = 32 * pick(1, 6),
                              .blocks_per_sm = pick(1, 4),
                              .registers_per_sm = 256 * pick(1, 8),
                              .shared_bytes_per_sm = pick(1, 8),
                              .shared_bytes_per_block = 8,
                              .shared_unit = 1};
    const auto kernel = [&] {
      for (;;) {
        const KernelResources block{.threads = 32 * pick(1, 3),
                                    .registers_per_thread = 8 * pick(0, 3),
                                    .shared_bytes = pick(0, 6)};
        if (blocks_per_sm(block, device) > 0) return block;
      }
    };
    const KernelResources need = kernel();
    const auto num_kinds = static_cast<std::size_t>(pick(1, 4));
    std::vector<Crowd> crowds;
    for (std::size_t k = 0; k < num_kinds; ++k) crowds.push_back({kernel(), pick(0, 4)});
    const std::int64_t bound = Residency(device).blocked_sms(need, crowds);
    const int most = Spread(device, need, crowds).most_blocked(device.num_sms);
    ASSERT_GE(bound, most);
    ++cases[num_kinds];
    exact[num_kinds] += bound == most ? 1 : 0;
    needless[num_kinds] += bound == device.num_sms && most < device.num_sms ? 1 : 0;
    if (num_kinds == 1) {
      ASSERT_EQ(bound, most);
    }
  }
  for (std::size_t k = 1; k <= 4; ++k) {
    std::printf("%d kernels: %d of %d exact, %d needlessly refused\n", static_cast<int>(k),
                exact[k], cases[k], needless[k]);
  }
  EXPECT_GT(exact[2], cases[2] * 9 / 10);
}

}  // namespace
}  // namespace tileweave::testing

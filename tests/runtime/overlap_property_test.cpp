// Overlapped and serial runs of random plans against their evaluation on the host.
#include <gtest/gtest.h>

#include "tests/runtime/devices.h"
#include "tests/runtime/property.h"
#include "tileweave/core/target.h"

namespace tileweave {
namespace {

struct Coverage {
  std::int32_t plans = 0;
  std::int32_t edges = 0;
  std::int32_t tile_edges = 0;
  std::int32_t downgrades = 0;
};

void count(const Verdict& verdict, Coverage& coverage) {
  ++coverage.plans;
  for (const EdgeReport& edge : verdict.edges) {
    ++coverage.edges;
    coverage.tile_edges += edge.kind == EdgeKind::kTile ? 1 : 0;
  }
  coverage.downgrades += verdict.num_downgrades();
}

/// Serial and overlap on `explore` with `num_sms` SMs, eager and recorded, trusted launch order or
/// not, with and without reuse of buffers: drawn from the seed.
void explore(std::uint64_t seed, std::int32_t num_sms, Coverage& coverage) {
  SCOPED_TRACE("seed " + std::to_string(seed) + " on " + std::to_string(num_sms) + " SMs");
  const LaunchOrder launch_order = seed % 3 == 0 ? LaunchOrder::kTrusted : LaunchOrder::kNotTrusted;
  const MixPlan mix =
      random_plan({.seed = seed,
                   .wait_first = launch_order == LaunchOrder::kTrusted ? WaitFirst::kLeftOut
                                                                       : WaitFirst::kAllowed});
  const double delays = seed % 4 == 0 ? 0.0 : static_cast<double>(seed % 4) * 0.15;
  const std::unique_ptr<Device> device = open_mix_device({.way = CpuWay::kExplore,
                                                          .num_sms = num_sms,
                                                          .seed = seed + 1000,
                                                          .delay_probability = delays});
  RunOptions options{.submit = seed % 2 == 0 ? Submit::kGraph : Submit::kEager,
                     .launch_order = launch_order,
                     .reuse = seed % 5 == 0 ? BufferReuse::kOff : BufferReuse::kOn};
  ASSERT_TRUE(runs_like_the_oracle(*device, mix, options)) << "overlap";
  const VerifyOptions how{.device = device->limits(), .launch_order = options.launch_order};
  count(verify(mix.plan, how), coverage);
  options.mode = Mode::kSerial;
  ASSERT_TRUE(runs_like_the_oracle(*device, mix, options)) << "serial";
}

void explore_all(std::uint64_t first, std::uint64_t last) {
  Coverage coverage;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    for (const std::int32_t num_sms : {2, 7, 132}) {
      explore(seed, num_sms, coverage);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  // The property is worth nothing if everything was downgraded to serial order.
  EXPECT_GT(coverage.tile_edges * 4, coverage.edges);
  EXPECT_GT(coverage.downgrades, 0);
  std::printf("%d plans, %d data edges, %d of them by tiles, %d downgraded\n", coverage.plans,
              coverage.edges, coverage.tile_edges, coverage.downgrades);
}

void throughput_all(std::uint64_t first, std::uint64_t last) {
  const std::unique_ptr<Device> cores = open_mix_device({});
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " on threads");
    const std::unique_ptr<Device> device =
        seed % 2 == 0 ? open_mix_device({.num_sms = static_cast<std::int32_t>(2 + seed % 3)})
                      : nullptr;
    const MixPlan mix = random_plan({.seed = seed});
    for (const Mode mode : {Mode::kOverlap, Mode::kSerial}) {
      ASSERT_TRUE(runs_like_the_oracle(
          device ? *device : *cores, mix,
          {.mode = mode, .submit = seed % 3 == 0 ? Submit::kEager : Submit::kGraph}));
    }
  }
}

TEST(OverlapProperty, TwoHundredPlansOnTwoSevenAnd132EmulatedSmsGiveTheBitsOfTheHost) {
  explore_all(1, 200);
}

TEST(OverlapProperty, PlansOnThreadsGiveTheBitsOfTheHost) {
  throughput_all(1, 100);
}

TEST(OverlapProperty, CheckingViewsFindNothingToSayAboutRandomPlans) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::unique_ptr<Device> device = open_mix_device(
        {.way = CpuWay::kExplore, .num_sms = 3, .seed = seed, .check_views = CheckViews::kOn});
    const MixPlan mix = random_plan({.seed = seed});
    ASSERT_TRUE(runs_like_the_oracle(*device, mix, {}));
  }
}

TEST(OverlapProperty, ModelledRunsComputeTheSameBits) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::unique_ptr<Device> device = open_mix_device({.way = CpuWay::kModel, .num_sms = 5});
    const MixPlan mix = random_plan({.seed = seed});
    ASSERT_TRUE(runs_like_the_oracle(*device, mix, {}));
  }
}

TEST(LongOverlapProperty, ThousandsOfPlansGiveTheBitsOfTheHost) {
  explore_all(1'001, TW_TSAN ? 1'200 : 4'000);  // many times slower there
}

TEST(LongOverlapProperty, ManyPlansOnThreadsGiveTheBitsOfTheHost) {
  throughput_all(1'001, 3'000);
}

}  // namespace
}  // namespace tileweave

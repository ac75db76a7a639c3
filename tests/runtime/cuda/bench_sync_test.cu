// The hop benchmark runs every arm and checks its chains; the numbers are printed, not judged.
#include <algorithm>
#include <cstdio>

#include "tests/runtime/cuda/watchdog.h"
#include "tileweave/runtime/cuda/bench_sync.h"

namespace tileweave {
namespace {

class HopBench : public GpuTest {};

TEST_F(HopBench, MeasuresEveryArm) {
  const HopBenchReport report = measure_hops({.num_nodes = 256, .repeats = 11});
  EXPECT_EQ(report.arms.size(), 20U);
  for (const HopArmResult& arm : report.arms) {
    ASSERT_EQ(arm.us_per_hop.size(), 11U);
    const auto [least, most] = std::minmax_element(arm.us_per_hop.begin(), arm.us_per_hop.end());
    EXPECT_GT(*least, 0.0);
    std::printf("%-45s %6.2f us a hop (%.2f to %.2f)%s\n", arm.name.c_str(), arm.median_us(),
                *least, *most, arm.num_downgrades > 0 ? ", downgraded" : "");
  }
}

}  // namespace
}  // namespace tileweave

// RMSNorm between two GEMMs on the emulated device, with checking views.
#include <gtest/gtest.h>

#include "tests/kernels/norm/norm_chain.h"

namespace tileweave {
namespace {

TEST(RmsNormCpu, BetweenGemmsGivesTheSameBitsForEveryTilingAndMode) {
  const auto device = open_cpu_device({.num_sms = 3, .check_views = CheckViews::kOn});
  add_gemm_cpu(device->kernels());
  add_norm_cpu(device->kernels());
  const NormResult expected = run_norm_chain(*device, {.name = "untiled"}, {.mode = Mode::kSerial});
  EXPECT_LE(worst_share_of_bound(expected), 1);
  for (const NormCase& c : norm_cases()) {
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      SCOPED_TRACE(c.name + (mode == Mode::kSerial ? ", serial" : ", overlap"));
      EXPECT_TRUE(run_norm_chain(*device, c, {.mode = mode}) == expected);
    }
  }
}

TEST(RmsNormCpu, ExploredSchedulesGiveTheBitsOfSerial) {
  for (const NormCase& c : norm_cases()) {
    NormResult expected;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
      const auto device = open_cpu_device({.way = CpuWay::kExplore,
                                           .num_sms = seed % 2 == 0 ? 2 : 7,
                                           .seed = seed,
                                           .delay_probability = 0.2,
                                           .check_views = CheckViews::kOn});
      add_gemm_cpu(device->kernels());
      add_norm_cpu(device->kernels());
      if (seed == 1) expected = run_norm_chain(*device, c, {.mode = Mode::kSerial});
      ASSERT_TRUE(run_norm_chain(*device, c, {}) == expected);
    }
  }
}

}  // namespace
}  // namespace tileweave

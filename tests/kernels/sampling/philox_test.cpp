// Philox against the vectors published with it (Random123's kat_vectors), and the uniform numbers.
#include "tileweave/kernels/sampling/philox.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tileweave {
namespace {

TEST(Philox, GivesThePublishedVectors) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}));
  EXPECT_EQ(philox4x32_10({0xffffffffU, 0xffffffffU, 0xffffffffU, 0xffffffffU},
                          {0xffffffffU, 0xffffffffU}),
            (PhiloxCounter{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}));
  EXPECT_EQ(philox4x32_10({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U},
                          {0xa4093822U, 0x299f31d0U}),
            (PhiloxCounter{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U}));
}

TEST(Philox, UniformNumbersFillTheUnitIntervalEvenly) {
  constexpr int kCount = 20000;
  double sum = 0, squares = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const double value = sampling_uniform(i % 7, 0, i);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value - 0.5;
    squares += (value - 0.5) * (value - 0.5);
  }
  // Means of uniform numbers: standard deviations sqrt(1/12 / n) and sqrt(1/180 / n); 4 of them.
  EXPECT_LT(std::fabs(sum / kCount), 4 * std::sqrt(1.0 / 12 / kCount));
  EXPECT_LT(std::fabs(squares / kCount - 1.0 / 12), 4 * std::sqrt(1.0 / 180 / kCount));
}

TEST(Philox, SeedsAndPositionsAllMatter) {
  EXPECT_NE(sampling_uniform(1, 0, 5), sampling_uniform(2, 0, 5));
  EXPECT_NE(sampling_uniform(1, 0, 5), sampling_uniform(1, 1, 5));
  EXPECT_NE(sampling_uniform(1, 0, 5), sampling_uniform(1, 0, 6));
}

}  // namespace
}  // namespace tileweave

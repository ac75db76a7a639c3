#include "tileweave/core/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tileweave {
namespace {

float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

TEST(DType, KnowsItsSizeAndName) {
  EXPECT_EQ(size_of(DType::kF32), 4U);
  EXPECT_EQ(size_of(DType::kBF16), 2U);
  EXPECT_EQ(size_of(DType::kF16), 2U);
  EXPECT_EQ(size_of(DType::kU8), 1U);
  EXPECT_STREQ(name_of(DType::kBF16), "bf16");
  static_assert(kDTypeOf<float> == DType::kF32);
  static_assert(kDTypeOf<std::int32_t> == DType::kI32);
  static_assert(kDTypeOf<std::uint32_t> == DType::kU32);
  static_assert(kDTypeOf<std::uint8_t> == DType::kU8);
}

TEST(BFloat16, ConvertsToFloatAndBackUnchanged) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const BFloat16 value{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(value);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(to_float(to_bfloat16(wide)))) << bits;
    } else {
      ASSERT_EQ(to_bfloat16(wide).bits, bits);
    }
  }
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t high = 0; high < 0x7f80U; high += 7) {  // every 7th positive bfloat16
    for (const std::uint32_t low : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      const std::uint32_t bits = high << 16 | low;
      const bool up = low > 0x8000U || (low == 0x8000U && (high & 1U) != 0);
      const std::uint32_t expected = high + (up ? 1U : 0U);
      ASSERT_EQ(to_bfloat16(float_of(bits)).bits, expected) << std::hex << bits;
      ASSERT_EQ(to_bfloat16(float_of(bits | 0x80000000U)).bits, expected | 0x8000U);
    }
  }
}

TEST(BFloat16, KeepsNaNAndOverflowsToInfinity) {
  for (const std::uint32_t bits : {0x7f800001U, 0x7fffffffU, 0xff800001U, 0x7fc00000U}) {
    EXPECT_TRUE(std::isnan(to_float(to_bfloat16(float_of(bits))))) << std::hex << bits;
  }
  EXPECT_TRUE(std::isinf(to_float(to_bfloat16(std::numeric_limits<float>::max()))));
  EXPECT_TRUE(std::isinf(to_float(to_bfloat16(std::numeric_limits<float>::infinity()))));
}

/// The nearest binary16 by search over all of them: what to_float16 must give.
std::uint16_t nearest_by_search(float value) {
  std::uint16_t best = 0;
  double best_distance = std::numeric_limits<double>::infinity();
  const double wanted = std::fabs(static_cast<double>(value));
  for (std::uint32_t bits = 0; bits <= 0x7c00U; ++bits) {
    // Infinity stands where the next finite value would be.
    const double at =
        bits == 0x7c00U ? 65536.0 : to_float(Float16{static_cast<std::uint16_t>(bits)});
    const double distance = std::fabs(at - wanted);
    if (distance < best_distance || (distance == best_distance && (bits & 1U) == 0)) {
      best = static_cast<std::uint16_t>(bits);
      best_distance = distance;
    }
  }
  return static_cast<std::uint16_t>(best | (std::signbit(value) ? 0x8000U : 0U));
}

TEST(Float16, ConvertsToFloatAndBackUnchanged) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const Float16 value{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(value);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(to_float(to_float16(wide)))) << bits;
    } else {
      ASSERT_EQ(to_float16(wide).bits, bits);
    }
  }
  EXPECT_EQ(to_float(Float16{0x3c00}), 1.0F);
  EXPECT_EQ(to_float(Float16{0x7bff}), 65504.0F);
  EXPECT_EQ(to_float(Float16{0x0001}), 0x1p-24F);
  EXPECT_EQ(to_float(Float16{0x03ff}), 1023 * 0x1p-24F);
  EXPECT_TRUE(std::isinf(to_float(Float16{0xfc00})));
}

TEST(Float16, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t half = 0; half < 0x7c00U; half += 37) {  // every 37th finite value, and around
    const float at = to_float(Float16{static_cast<std::uint16_t>(half)});
    const float next =
        half == 0x7bffU ? 65536.0F : to_float(Float16{static_cast<std::uint16_t>(half + 1)});
    const float middle = 0.5F * (at + next);
    for (const float value :
         {at, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F)}) {
      ASSERT_EQ(to_float16(value).bits, nearest_by_search(value)) << value;
      ASSERT_EQ(to_float16(-value).bits, nearest_by_search(-value)) << value;
    }
  }
  EXPECT_EQ(to_float16(65519.996F).bits, 0x7bffU);
  EXPECT_EQ(to_float16(65520.0F).bits, 0x7c00U);
  EXPECT_EQ(to_float16(std::numeric_limits<float>::max()).bits, 0x7c00U);
  EXPECT_EQ(to_float16(std::numeric_limits<float>::denorm_min()).bits, 0U);
}

}  // namespace
}  // namespace tileweave

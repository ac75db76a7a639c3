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

}  // namespace
}  // namespace tileweave

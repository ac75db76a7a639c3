// Element types of tensors, and exact conversions between the 16-bit floating-point types and
// float.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "tileweave/core/error.h"
#include "tileweave/core/target.h"

namespace tileweave {

enum class DType : std::uint8_t { kF32, kBF16, kF16, kI32, kU32, kU8 };

constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kU8:
      return 1;
  }
  return 0;
}

constexpr const char* name_of(DType type) {
  switch (type) {
    case DType::kF32:
      return "f32";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kI32:
      return "i32";
    case DType::kU32:
      return "u32";
    case DType::kU8:
      return "u8";
  }
  return "?";
}

/// Storage of a bfloat16 on the host.
struct BFloat16 {
  std::uint16_t bits = 0;
};

constexpr float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
constexpr float to_float(float value) {
  return value;
}

/// Rounds to nearest, ties to even; NaN stays NaN.
constexpr BFloat16 to_bfloat16(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {
    return BFloat16{static_cast<std::uint16_t>((bits >> 16) | 0x0040U)};
  }
  bits += 0x7fffU + ((bits >> 16) & 1U);
  return BFloat16{static_cast<std::uint16_t>(bits >> 16)};
}

/// Storage of an IEEE binary16 on the host.
struct Float16 {
  std::uint16_t bits = 0;
};

constexpr float to_float(Float16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  const std::uint32_t rest = static_cast<std::uint32_t>(value.bits & 0x7fffU) << 13;
  if (rest >= 0x0f800000U) return std::bit_cast<float>(sign | (rest + 0x70000000U));  // Inf, NaN
  if (rest >= 0x00800000U) return std::bit_cast<float>(sign | (rest + 0x38000000U));
  const float subnormal = static_cast<float>(value.bits & 0x3ffU) * 0x1p-24F;
  return sign != 0 ? -subnormal : subnormal;
}

/// Rounds to nearest, ties to even; NaN stays NaN, overflow becomes infinity.
constexpr Float16 to_float16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t rest = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (rest > 0x7f800000U) {
    half = 0x7e00U | ((rest >> 13) & 0x1ffU);
  } else if (rest >= 0x47800000U) {  // 65536 and above
    half = 0x7c00U;
  } else if (rest >= 0x38800000U) {  // 2^-14: normal; a carry may reach infinity
    half = (rest - 0x38000000U + 0xfffU + ((rest >> 13) & 1U)) >> 13;
  } else if (rest > 0x33000000U) {                    // above 2^-25, which rounds to zero
    const std::uint32_t shift = 126U - (rest >> 23);  // 14 to 24
    const std::uint32_t fraction = (rest & 0x7fffffU) | 0x800000U;
    const std::uint32_t odd = (fraction >> shift) & 1U;
    half = (fraction + (1U << (shift - 1)) - 1U + odd) >> shift;
  }
  return Float16{static_cast<std::uint16_t>(sign | half)};
}

template <class T>
constexpr T from_float(float value);
template <>
constexpr float from_float<float>(float value) {
  return value;
}
template <>
constexpr BFloat16 from_float<BFloat16>(float value) {
  return to_bfloat16(value);
}

template <>
constexpr Float16 from_float<Float16>(float value) {
  return to_float16(value);
}

/// Element type of a C++ type; only the types below have one.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType kValue = DType::kF32;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType kValue = DType::kBF16;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType kValue = DType::kF16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType kValue = DType::kI32;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType kValue = DType::kU32;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType kValue = DType::kU8;
};
template <class T>
inline constexpr DType kDTypeOf = DTypeOf<T>::kValue;

}  // namespace tileweave

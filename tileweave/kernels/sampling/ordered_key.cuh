// Floats as integers in their order, and maxima of a block over them.
#pragma once

#include <cstdint>

namespace tileweave {

/// The larger float has the larger key; the two zeroes share one. -inf is above 0, NaN is 0.
__device__ __forceinline__ std::uint32_t ordered_key(float value) {
  if (value != value) return 0;
  const std::uint32_t bits = value == 0 ? 0 : __float_as_uint(value);
  return bits ^ ((bits >> 31) != 0 ? 0xffffffffU : 0x80000000U);
}

/// The float of a key that is not 0 (+0 for the zeroes).
__device__ __forceinline__ float value_of_key(std::uint32_t key) {
  return __uint_as_float(key ^ ((key >> 31) != 0 ? 0x80000000U : 0xffffffffU));
}

/// Key and column in one word whose maximum is the largest element, of equal ones the lowest
/// column. 0: none, as for NaN.
__device__ __forceinline__ std::uint64_t best_of(std::uint32_t key, std::int32_t column) {
  return key == 0 ? 0 : std::uint64_t{key} << 32 | ~static_cast<std::uint32_t>(column);
}
__device__ __forceinline__ std::uint32_t key_of_best(std::uint64_t best) {
  return static_cast<std::uint32_t>(best >> 32);
}
/// -1: none.
__device__ __forceinline__ std::int32_t column_of_best(std::uint64_t best) {
  return best == 0 ? -1 : static_cast<std::int32_t>(~static_cast<std::uint32_t>(best));
}

/// The best of what one thread looks at. Its columns ascend, so an equal element never replaces
/// one.
struct BestSeen {
  std::uint32_t key = 0;
  std::int32_t column = -1;

  __device__ __forceinline__ void look_at(float value, std::int32_t at) {
    const std::uint32_t other = ordered_key(value);
    if (other <= key) return;
    key = other;
    column = at;
  }
  __device__ __forceinline__ std::uint64_t best() const { return best_of(key, column); }
};

/// The maximum over a warp, in every lane.
__device__ __forceinline__ std::uint64_t warp_max(std::uint64_t value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    const auto other = static_cast<std::uint64_t>(
        __shfl_xor_sync(0xffffffffU, static_cast<unsigned long long>(value), distance));
    value = value < other ? other : value;
  }
  return value;
}

}  // namespace tileweave

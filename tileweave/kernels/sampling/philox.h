// Philox4x32-10, the counter-based random numbers of Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3" (SC11): the same counter and key give the same words, with no state between.
#pragma once

#include <array>
#include <cstdint>

#include "tileweave/core/target.h"

namespace tileweave {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53U;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57U;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

/// Uniform in [0, 1) with 53 random bits: the draw of one token, by seed and position alone.
constexpr double sampling_uniform(std::uint32_t seed_low, std::uint32_t seed_high,
                                  std::uint32_t position) {
  const PhiloxCounter words = philox4x32_10({position, 0, 0, 0}, {seed_low, seed_high});
  const std::uint64_t bits = (std::uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace tileweave

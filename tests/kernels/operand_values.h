// Reproducible random operands for kernel tests.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tileweave/core/dtype.h"

namespace tileweave {

/// `count` values in [-1, 1), rounded to T.
template <class T>
std::vector<T> random_values(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) {
    value = from_float<T>(static_cast<float>(static_cast<std::int64_t>(bits() >> 40) - (1 << 23)) /
                          static_cast<float>(1 << 23));
  }
  return values;
}

}  // namespace tileweave

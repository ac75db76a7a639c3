// Random: the seeded generator of `explore` (splitmix64): the same numbers everywhere.
#pragma once

#include <cstdint>

namespace tileweave::cpu {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  /// In [0, count); `count` > 0. The bias of the remainder is irrelevant for choosing.
  std::uint64_t below(std::uint64_t count) { return next() % count; }
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  bool chance(double probability) { return unit() < probability; }

 private:
  std::uint64_t state_;
};

}  // namespace tileweave::cpu

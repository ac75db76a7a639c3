// Random shapes and cuts for the property tests of the tile algebra: small, nasty and reproducible.
//
// A case is named by its seed alone; every failure message prints it. Sizes favour what breaks
// index arithmetic: 1, primes, one more or one less than the tile, tiles longer than the axis.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tileweave/core/coord.h"
#include "tileweave/core/format.h"
#include "tileweave/tile/tiling.h"

namespace tileweave::testing {

/// SplitMix64: the same numbers with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// Uniform in [low, high].
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t state_;
};

/// Ten times as many cases in the long test run.
inline std::uint64_t num_cases(std::uint64_t usual) {
  return std::getenv("TILEWEAVE_LONG") != nullptr ? usual * 10 : usual;
}

/// Two cuts of one tensor.
struct TwoCuts {
  Tiling kernel;
  Tiling data;
  std::string describe() const {
    return "shape " + to_string(kernel.shape) + ", kernel tile " + to_string(kernel.tile) +
           ", data tile " + to_string(data.tile);
  }
};

inline std::int64_t random_tile(Random& random, std::int64_t extent) {
  switch (random.in(0, 5)) {
    case 0:
      return 1;
    case 1:
      return extent;
    case 2:
      return extent + random.in(1, 3);
    case 3:
      return extent > 1 ? extent - 1 : 1;
    default:
      return random.in(1, extent);
  }
}

/// A shape of 1 to 5 axes and at most about `max_volume` elements.
inline Shape random_shape(Random& random, std::int64_t max_volume) {
  static constexpr std::int64_t kPrimes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31};
  Shape shape;
  shape.num_axes = static_cast<int>(random.in(1, kMaxAxes));
  std::int64_t left = max_volume;
  for (int a = 0; a < shape.num_axes; ++a) {
    std::int64_t size = 1;
    switch (random.in(0, 4)) {
      case 0:
        break;
      case 1:
        size = kPrimes[random.in(0, 10)];
        break;
      case 2:
        size = random.in(1, 4) * random.in(1, 6) + random.in(-1, 1);
        break;
      default:
        size = random.in(1, shape.num_axes == 1 ? 200 : 16);
    }
    shape[a] = max64(1, min64(size, left));
    left /= shape[a];
  }
  return shape;
}

inline TwoCuts random_cuts(Random& random, std::int64_t max_volume) {
  TwoCuts cuts;
  cuts.kernel.shape = cuts.data.shape = random_shape(random, max_volume);
  cuts.kernel.tile.num_axes = cuts.data.tile.num_axes = cuts.kernel.shape.num_axes;
  for (int a = 0; a < cuts.kernel.shape.num_axes; ++a) {
    const std::int64_t extent = cuts.kernel.shape[a];
    const std::int64_t tile = random_tile(random, extent);
    cuts.kernel.tile[a] = tile;
    switch (random.in(0, 3)) {
      case 0:
        cuts.data.tile[a] = tile + 1;
        break;
      case 1:
        cuts.data.tile[a] = max64(1, tile - 1);
        break;
      default:
        cuts.data.tile[a] = random_tile(random, extent);
    }
  }
  return cuts;
}

/// Two cuts whose extents exceed 2^31 while each axis has only a few tiles.
inline TwoCuts random_large_cuts(Random& random) {
  TwoCuts cuts;
  Shape shape;
  shape.num_axes = static_cast<int>(random.in(1, kMaxAxes));
  int bits_left = 61;
  for (int a = 0; a < shape.num_axes; ++a) {
    const bool large = a == 0 || random.in(0, 3) == 0;
    const int bits =
        large ? static_cast<int>(random.in(32, 40)) : static_cast<int>(random.in(0, 3));
    if (bits >= bits_left) {
      shape[a] = 1;
      continue;
    }
    bits_left -= bits + 1;
    shape[a] = (std::int64_t{1} << bits) + random.in(-1, 1);
    if (shape[a] < 1) shape[a] = 1;
  }
  cuts.kernel.shape = cuts.data.shape = shape;
  cuts.kernel.tile.num_axes = cuts.data.tile.num_axes = shape.num_axes;
  for (int a = 0; a < shape.num_axes; ++a) {
    for (Coord* tile : {&cuts.kernel.tile, &cuts.data.tile}) {
      const std::int64_t parts = random.in(1, 5);
      (*tile)[a] = max64(1, ceil_div(shape[a], parts) + random.in(-1, 1));
    }
  }
  return cuts;
}

/// A partition of `shape` into boxes, made by cutting at random until no piece wants another cut.
inline std::vector<Box> random_partition(Random& random, const Shape& shape, int max_boxes) {
  Box whole;
  whole.begin = Coord::filled(shape.num_axes, 0);
  whole.size = shape;
  std::vector<Box> boxes = {whole};
  for (int tries = 0; tries < 4 * max_boxes && static_cast<int>(boxes.size()) < max_boxes;
       ++tries) {
    const auto i =
        static_cast<std::size_t>(random.in(0, static_cast<std::int64_t>(boxes.size()) - 1));
    const int axis = static_cast<int>(random.in(0, shape.num_axes - 1));
    if (boxes[i].size[axis] < 2) continue;
    const std::int64_t cut = random.in(1, boxes[i].size[axis] - 1);
    Box upper = boxes[i];
    upper.begin[axis] += cut;
    upper.size[axis] -= cut;
    boxes[i].size[axis] = cut;
    boxes.push_back(upper);
  }
  return boxes;
}

}  // namespace tileweave::testing

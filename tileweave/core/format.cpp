#include "tileweave/core/format.h"

#include <array>
#include <cstdio>
#include <limits>

namespace tileweave {

std::string to_string(const Coord& coord) {
  std::string text = "(";
  for (int a = 0; a < coord.num_axes; ++a) {
    if (a > 0) text += ", ";
    text += std::to_string(coord[a]);
  }
  return text + ")";
}

std::string to_string(const Box& box) {
  std::string text = "[";
  for (int a = 0; a < box.begin.num_axes; ++a) {
    if (a > 0) text += ", ";
    const std::int64_t begin = box.begin[a];
    const std::int64_t size = box.size[a];
    // A nonsensical box, which error sentences must be able to name, may end past 2^63.
    const bool has_end = size > 0 ? begin <= std::numeric_limits<std::int64_t>::max() - size
                                  : begin >= std::numeric_limits<std::int64_t>::min() - size;
    text += std::to_string(begin) +
            (has_end ? ":" + std::to_string(begin + size) : "+" + std::to_string(size));
  }
  return text + "]";
}

std::string human_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text.data();
}

}  // namespace tileweave

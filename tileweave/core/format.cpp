#include "tileweave/core/format.h"

#include <array>
#include <cstdio>

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
    text += std::to_string(box.begin[a]) + ":" + std::to_string(box.begin[a] + box.size[a]);
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

#include "tileweave/trace/duration.h"

#include <array>
#include <cstdio>

#include "tileweave/trace/escape.h"

namespace tileweave {
namespace {

std::string format_scaled(double value, const char* unit) {
  const int decimals = value < 10 ? 3 : value < 100 ? 2 : 1;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, value, unit);
  return text.data();
}

}  // namespace

std::string format_duration(std::uint64_t duration, std::string_view time_unit) {
  if (time_unit != "ns") {
    if (duration == 1 && time_unit.ends_with('s')) time_unit.remove_suffix(1);  // "1 tick"
    return format_count(duration) + " " + printable(time_unit);
  }
  const auto value = static_cast<double>(duration);
  if (duration < 1000) return std::to_string(duration) + " ns";
  if (duration < 1000 * 1000) return format_scaled(value / 1e3, "\xC2\xB5s");
  if (duration < 1000 * 1000 * 1000) return format_scaled(value / 1e6, "ms");
  return format_scaled(value / 1e9, "s");
}

std::string format_share(double part, double whole) {
  if (whole <= 0) return "\xE2\x80\x93";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * part / whole);
  return text.data();
}

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

}  // namespace tileweave

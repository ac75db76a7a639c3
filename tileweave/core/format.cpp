#include "tileweave/core/format.h"

#include <array>
#include <cstdio>
#include <limits>

namespace tileweave {
namespace {

// Bytes of the UTF-8 character that `text` begins with; 0 when it begins with none.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool is_outside = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return is_overlong || is_outside ? 0 : length;
}

}  // namespace

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

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::string in_quotes(std::string_view text) {
  static constexpr std::size_t kMaxLength = 80;
  std::string result = "\"";
  while (!text.empty() && result.size() < kMaxLength) {
    const std::size_t length = character_length(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    // Two-byte characters below U+00A0 are controls.
    const bool is_control =
        length == 1 ? byte < 0x20 || byte == 0x7f
                    : length == 2 && byte == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (length == 0 || is_control) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x", byte);
      result += escape.data();
      text.remove_prefix(1);
      continue;
    }
    if (byte == '"' || byte == '\\') result += '\\';
    result += text.substr(0, length);
    text.remove_prefix(length);
  }
  return result + (text.empty() ? "\"" : "…\"");
}

}  // namespace tileweave

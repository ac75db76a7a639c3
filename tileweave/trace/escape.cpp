#include "tileweave/trace/escape.h"

#include <array>
#include <cstdint>
#include <cstdio>

namespace tileweave {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

// Takes one code point off the front of `text`, which is not empty. An ill-formed sequence yields
// U+FFFD and takes the bytes up to the first that cannot continue it.
char32_t take_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  std::size_t length = 1;
  char32_t value = lead;
  std::uint8_t low = 0x80;   // bounds of the second byte: they exclude overlong forms, surrogates
  std::uint8_t high = 0xBF;  // and values above U+10FFFF
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    value = lead & 0x1Fu;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    value = lead & 0x0Fu;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    value = lead & 0x07u;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else if (lead >= 0x80) {
    text.remove_prefix(1);
    return kReplacement;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) {
      text.remove_prefix(i);
      return kReplacement;
    }
    value = (value << 6) | (byte(i) & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  text.remove_prefix(length);
  return value;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](std::uint32_t bits) { out.push_back(static_cast<char>(bits)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

void append_json_unit(std::string& out, std::uint32_t unit) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", static_cast<unsigned>(unit & 0xFFFF));
  out += text.data();
}

// Control characters, and the two marks that can reorder or break a line of text around them.
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

}  // namespace

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const char32_t c = take_code_point(text);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c >= 0x20 && c < 0x7F && c != '<' && c != '>' && c != '&') {
      out.push_back(static_cast<char>(c));
    } else if (c < 0x10000) {
      append_json_unit(out, c);
    } else {
      append_json_unit(out, 0xD800 + ((c - 0x10000) >> 10));
      append_json_unit(out, 0xDC00 + ((c - 0x10000) & 0x3FF));
    }
  }
  out.push_back('"');
  return out;
}

std::string html_escape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const char32_t c = take_code_point(text);
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        append_utf8(out, is_control(c) ? kReplacement : c);
    }
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const char32_t c = take_code_point(text);
    append_utf8(out, is_control(c) ? kReplacement : c);
  }
  return out;
}

std::size_t num_code_points(std::string_view text) {
  std::size_t count = 0;
  while (!text.empty()) {
    take_code_point(text);
    ++count;
  }
  return count;
}

}  // namespace tileweave

#include "tileweave/models/tokenizer/utf8.h"

#include <cstdint>

namespace tileweave {
namespace {

std::uint32_t byte_at(std::string_view text, std::size_t offset) {
  return static_cast<unsigned char>(text[offset]);
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t offset) {
  const std::uint32_t lead = byte_at(text, offset);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  std::uint32_t value = lead & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) value = value << 6 | (byte_at(text, offset + i) & 0x3F);
  return {value, length};
}

CodePoint code_point_before(std::string_view text, std::size_t offset) {
  std::size_t begin = offset - 1;
  while (begin > 0 && (byte_at(text, begin) & 0xC0) == 0x80) --begin;
  return code_point_at(text, begin);
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  const auto c = static_cast<std::uint32_t>(code_point);
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

Utf8Part scan_utf8(std::string_view text, std::size_t offset) {
  const std::uint32_t lead = byte_at(text, offset);
  if (lead < 0x80) return {Utf8Kind::kCharacter, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Kind::kInvalid, 1};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte excludes overlong forms, surrogates and values above U+10FFFF.
  std::uint32_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  std::uint32_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < length; ++i) {
    if (offset + i == text.size()) return {Utf8Kind::kUnfinished, i};
    const std::uint32_t next = byte_at(text, offset + i);
    if (next < low || next > high) return {Utf8Kind::kInvalid, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Kind::kCharacter, length};
}

}  // namespace tileweave

// Steps through UTF-8 text, one code point at a time. Internal to the tokenizer.
//
// code_point_at expects valid UTF-8 (Tokenizer::encode checks its text, JSON strings are checked
// when the file is parsed); scan_utf8 expects anything.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tileweave {

struct CodePoint {
  char32_t value;
  std::size_t length;  // bytes
};

/// The code point that begins at `offset` of valid UTF-8.
CodePoint code_point_at(std::string_view text, std::size_t offset);
/// The code point that ends before `offset` of valid UTF-8; `offset` > 0.
CodePoint code_point_before(std::string_view text, std::size_t offset);
void append_utf8(std::string& out, char32_t code_point);

enum class Utf8Kind { kCharacter, kInvalid, kUnfinished };

/// What begins at `offset`: a character, bytes that begin none, or a character whose end is missing
/// because the text ends. `length`: its bytes; of kInvalid, the longest part that one U+FFFD
/// replaces (Unicode, "maximal subpart").
struct Utf8Part {
  Utf8Kind kind;
  std::size_t length;
};
Utf8Part scan_utf8(std::string_view text, std::size_t offset);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace tileweave

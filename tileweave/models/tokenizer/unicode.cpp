#include "tileweave/models/tokenizer/unicode.h"

#include <oniguruma.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "tileweave/core/error.h"
#include "tileweave/models/tokenizer/late_characters.h"
#include "tileweave/models/tokenizer/utf8.h"

namespace tileweave {
namespace {

// Text without a byte from here on lies below U+0300 and is in form C already.
constexpr unsigned char kFirstByteOfMarks = 0xCC;

void append_normal_form(std::string& out, std::string_view text, int options) {
  if (text.empty()) return;
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t length = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &result, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  if (length < 0) throw Error("normalize text", "valid UTF-8", utf8proc_errmsg(length));
  out.append(reinterpret_cast<const char*>(result), static_cast<std::size_t>(length));
}

int options_of(NormalForm form) {
  switch (form) {
    case NormalForm::kNfc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case NormalForm::kNfd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case NormalForm::kNfkc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case NormalForm::kNfkd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
}

}  // namespace

bool is_white_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= U'0' && c <= U'9';
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return is_in(kLateNumerics, c);
  }
}

bool is_word_character(char32_t c) {
  constexpr char32_t kZeroWidthNonJoiner = 0x200C;
  constexpr char32_t kZeroWidthJoiner = 0x200D;
  if (c == kZeroWidthNonJoiner || c == kZeroWidthJoiner) return true;
  if (c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0xBC && c <= 0xBE)) return false;  // ² ³ ¹ ¼ ½ ¾
  if (ONIGENC_IS_CODE_WORD(ONIG_ENCODING_UTF8, c)) return true;
  const bool is_late_numeral = c >= 0x1D2C0 && c <= 0x1D2D3;  // a number, no decimal digit
  return is_in(kLateLetters, c) || is_in(kLateMarks, c) ||
         (is_in(kLateNumbers, c) && !is_late_numeral);
}

void append_lower_case(std::string& out, char32_t c) {
  if (c == 0x130) {  // capital I with a dot: the one character whose lower case is two
    out += "i\xCC\x87";
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

std::string normalize(std::string_view text, NormalForm form) {
  const bool is_composed = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < kFirstByteOfMarks;
  });
  if (is_composed && form == NormalForm::kNfc) return std::string(text);
  const int options = options_of(form);
  std::string out;
  out.reserve(text.size());
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (c.value >= kLeftAlone[0].first && is_in(kLeftAlone, c.value)) {
      append_normal_form(out, text.substr(begin, at - begin), options);
      out += text.substr(at, c.length);
      begin = at + c.length;
    }
    at += c.length;
  }
  append_normal_form(out, text.substr(begin), options);
  return out;
}

}  // namespace tileweave

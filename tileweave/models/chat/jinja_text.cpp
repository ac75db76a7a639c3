#include "tileweave/models/chat/jinja_text.h"

#include <utf8proc.h>

#include <cstring>

namespace tileweave::jinja {
namespace {

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

struct CodeRange {
  char32_t first;
  char32_t last;
};

template <std::size_t N>
bool is_among(char32_t code, const CodeRange (&ranges)[N]) {
  for (const CodeRange& range : ranges) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

bool is_cased(char32_t code) {
  return is_upper(code) || is_lower(code) || is_title(code);
}

// What may stand between a capital sigma and the letter that makes it final or not.
bool is_ignored_by_case(char32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return code == '\'' || code == '.' || code == ':' || code == 0xb7 || code == 0x2019;
  }
}

bool ends_a_word(const std::vector<char32_t>& codes, std::size_t sigma) {
  std::size_t before = sigma;
  while (before > 0 && is_ignored_by_case(codes[before - 1])) --before;
  if (before == 0 || !is_cased(codes[before - 1])) return false;
  std::size_t after = sigma + 1;
  while (after < codes.size() && is_ignored_by_case(codes[after])) ++after;
  return after == codes.size() || !is_cased(codes[after]);
}

std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> codes;
  codes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) codes.push_back(next_code_point(text, at));
  return codes;
}

void append_upper(std::string& out, char32_t code) {
  if (const SpecialCase* special = find_special_case(code)) {
    out += special->upper;
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))));
  }
}

void append_title(std::string& out, char32_t code) {
  if (const SpecialCase* special = find_special_case(code)) {
    out += special->title;
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code))));
  }
}

void append_lower(std::string& out, const std::vector<char32_t>& codes, std::size_t at) {
  const char32_t code = codes[at];
  if (code == 0x3a3) {
    append_utf8(out, ends_a_word(codes, at) ? 0x3c2 : 0x3c3);
  } else if (code == 0x130) {
    out += "i\xcc\x87";
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  }
}

bool contains_code(std::string_view chars, char32_t code) {
  for (std::size_t at = 0; at < chars.size();) {
    if (next_code_point(chars, at) == code) return true;
  }
  return false;
}

// Start of the code point that ends before `end`.
std::size_t previous_start(std::string_view text, std::size_t end) {
  --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return end;
}

template <class IsWanted, class IsOther>
bool is_all(std::string_view text, const IsWanted& is_wanted, const IsOther& is_other) {
  bool has_wanted = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = next_code_point(text, at);
    if (is_other(code)) return false;
    has_wanted = has_wanted || is_wanted(code);
  }
  return has_wanted;
}

}  // namespace

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<char32_t>(static_cast<unsigned char>(text[i])) : 0;
  };
  const char32_t first = byte(at);
  if (first < 0x80) {
    at += 1;
    return first;
  }
  const std::size_t start = at;
  if (first < 0xe0) {
    at += 2;
    return (first & 0x1f) << 6 | (byte(start + 1) & 0x3f);
  }
  if (first < 0xf0) {
    at += 3;
    return (first & 0x0f) << 12 | (byte(start + 1) & 0x3f) << 6 | (byte(start + 2) & 0x3f);
  }
  at += 4;
  return (first & 0x07) << 18 | (byte(start + 1) & 0x3f) << 12 | (byte(start + 2) & 0x3f) << 6 |
         (byte(start + 3) & 0x3f);
}

void append_utf8(std::string& text, char32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto used = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(used));
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  return count;
}

std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from) {
  if (from > text.size() || wanted.size() > text.size() - from) return kNowhere;
  if (wanted.empty()) return from;
  // string_view::find may take the product of the sizes.
  const void* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  if (found == nullptr) return kNowhere;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
         code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
         code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool is_line_break(char32_t code) {
  return (code >= 0x0a && code <= 0x0d) || (code >= 0x1c && code <= 0x1e) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

bool is_printable(char32_t code) {
  if (code == ' ') return true;
  switch (category(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_upper(char32_t code) {
  static constexpr CodeRange kOthers[] = {
      // Unicode's Other_Uppercase
      {0x2160, 0x216f},   {0x24b6, 0x24cf},   {0x1f130, 0x1f149},
      {0x1f150, 0x1f169}, {0x1f170, 0x1f189},
  };
  return category(code) == UTF8PROC_CATEGORY_LU || is_among(code, kOthers);
}

bool is_lower(char32_t code) {
  static constexpr CodeRange kOthers[] = {
      // Unicode's Other_Lowercase
      {0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},
      {0x2e0, 0x2e4},     {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},
      {0x1d78, 0x1d78},   {0x1d9b, 0x1dbf},   {0x2071, 0x2071},   {0x207f, 0x207f},
      {0x2090, 0x209c},   {0x2170, 0x217f},   {0x24d0, 0x24e9},   {0x2c7c, 0x2c7d},
      {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},   {0xab5c, 0xab5f},
      {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba},
  };
  return category(code) == UTF8PROC_CATEGORY_LL || is_among(code, kOthers);
}

bool is_title(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LT;
}

bool is_letter(char32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool is_letter_or_number(char32_t code) {
  const utf8proc_category_t found = category(code);
  return is_letter(code) || found == UTF8PROC_CATEGORY_ND || found == UTF8PROC_CATEGORY_NL ||
         found == UTF8PROC_CATEGORY_NO;
}

bool is_digit(char32_t code) {
  // Unicode's Numeric_Type=Digit: superscripts, subscripts, circled and dotted digits.
  static constexpr CodeRange kRanges[] = {
      {0xb2, 0xb3},       {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},
      {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
      {0x2474, 0x247c},   {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},
      {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},   {0x278a, 0x2792},
      {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a},
  };
  return category(code) == UTF8PROC_CATEGORY_ND || is_among(code, kRanges);
}

bool is_all_upper(std::string_view text) {
  return is_all(text, is_upper, [](char32_t code) { return is_lower(code) || is_title(code); });
}

bool is_all_lower(std::string_view text) {
  return is_all(text, is_lower, [](char32_t code) { return is_upper(code) || is_title(code); });
}

std::string_view strip(std::string_view text, Side side, std::optional<std::string_view> chars) {
  const auto goes = [&](char32_t code) {
    return chars ? contains_code(*chars, code) : is_space(code);
  };
  std::size_t begin = 0;
  std::size_t end = text.size();
  while (side != Side::kRight && begin < end) {
    std::size_t next = begin;
    if (!goes(next_code_point(text, next))) break;
    begin = next;
  }
  while (side != Side::kLeft && end > begin) {
    const std::size_t start = previous_start(text, end);
    std::size_t read = start;
    if (!goes(next_code_point(text, read))) break;
    end = start;
  }
  return text.substr(begin, end - begin);
}

std::string to_upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) append_upper(out, next_code_point(text, at));
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const std::vector<char32_t> codes = code_points(text);
  for (std::size_t i = 0; i < codes.size(); ++i) append_lower(out, codes, i);
  return out;
}

std::string to_capitalized(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const std::vector<char32_t> codes = code_points(text);
  if (!codes.empty()) append_title(out, codes[0]);
  for (std::size_t i = 1; i < codes.size(); ++i) append_lower(out, codes, i);
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const std::vector<char32_t> codes = code_points(text);
  bool in_word = false;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (in_word) {
      append_lower(out, codes, i);
    } else {
      append_title(out, codes[i]);
    }
    in_word = is_cased(codes[i]);
  }
  return out;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at;
    const char32_t code = next_code_point(text, at);
    if (!is_line_break(code)) continue;
    if (code == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(start, end - start));
    start = at;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
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
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace tileweave::jinja

// Text as Python sees it: UTF-8 bytes counted, cut and changed in code points.
//
// Every function takes valid UTF-8; positions are byte offsets unless a name says code points. Case
// mapping follows Unicode (utf8proc and the multi-character special cases).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tileweave::jinja {

inline constexpr std::size_t kNowhere = std::string_view::npos;

/// Reads the code point at `at` and moves `at` behind it.
char32_t next_code_point(std::string_view text, std::size_t& at);
void append_utf8(std::string& text, char32_t code);
std::size_t count_code_points(std::string_view text);

/// Where `wanted` first lies in `text` at or after `from`, in linear time, or kNowhere.
std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from = 0);

bool is_space(char32_t code);
bool is_line_break(char32_t code);
bool is_printable(char32_t code);
bool is_upper(char32_t code);
bool is_lower(char32_t code);
bool is_title(char32_t code);
/// str.isupper() and str.islower(): letters of that case, and none of another.
bool is_all_upper(std::string_view text);
bool is_all_lower(std::string_view text);
bool is_letter(char32_t code);
bool is_letter_or_number(char32_t code);
bool is_digit(char32_t code);  // decimal digits of all scripts, superscripts and their like

enum class Side { kLeft, kRight, kBoth };

/// Without `chars`: white space; with: the code points of `chars`.
std::string_view strip(std::string_view text, Side side,
                       std::optional<std::string_view> chars = std::nullopt);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_capitalized(std::string_view text);  // first letter title case, the rest lower
std::string to_title(std::string_view text);        // str.title(): every run of letters

/// The lines of str.splitlines(), without their ends.
std::vector<std::string_view> split_lines(std::string_view text);

/// `text` with &, <, >, ' and " as entities.
std::string escape_html(std::string_view text);

/// What the upper and title case of one code point are where they are several; else nullptr.
struct SpecialCase {
  char32_t code;
  const char* upper;
  const char* title;
};
const SpecialCase* find_special_case(char32_t code);

}  // namespace tileweave::jinja

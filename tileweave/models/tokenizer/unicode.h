// Unicode properties and normal forms. Internal to the tokenizer; valid UTF-8 only.
//
// Token ids depend on them, so they follow what Hugging Face tokenizers does where the library
// below it (utf8proc, Oniguruma) knows another version of Unicode: digits are those of Unicode 17,
// normal forms leave characters alone that Unicode 9 did not have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tileweave {

/// The property White_Space.
bool is_white_space(char32_t c);
/// General category Nd, Nl or No.
bool is_numeric(char32_t c);
/// What Unicode calls \w: Alphabetic, marks, decimal digits, connecting punctuation, the joiners.
bool is_word_character(char32_t c);
/// Appends the lower-case form of one character (which may be two characters).
void append_lower_case(std::string& out, char32_t c);

enum class NormalForm : std::uint8_t { kNfc, kNfd, kNfkc, kNfkd };
std::string normalize(std::string_view text, NormalForm form);

}  // namespace tileweave

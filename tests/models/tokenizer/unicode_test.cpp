// UTF-8 and what the tokenizer asks of Unicode.
#include <gtest/gtest.h>

#include "tileweave/models/tokenizer/byte_alphabet.h"
#include "tileweave/models/tokenizer/unicode.h"
#include "tileweave/models/tokenizer/utf8.h"

namespace tileweave {
namespace {

TEST(Utf8, EveryCodePointIsWrittenAndReadBack) {
  std::string text;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    text.clear();
    append_utf8(text, c);
    ASSERT_EQ(code_point_at(text, 0).value, c);
    ASSERT_EQ(code_point_at(text, 0).length, text.size());
    ASSERT_EQ(code_point_before("x" + text, text.size() + 1).value, c);
    const Utf8Part part = scan_utf8(text, 0);
    ASSERT_EQ(part.kind, Utf8Kind::kCharacter);
    ASSERT_EQ(part.length, text.size());
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      const Utf8Part unfinished = scan_utf8(std::string_view(text).substr(0, cut), 0);
      ASSERT_EQ(unfinished.kind, Utf8Kind::kUnfinished);
      ASSERT_EQ(unfinished.length, cut);
    }
  }
}

TEST(Utf8, WhatBeginsNoCharacterIsInvalidUpToWhereOneCouldBegin) {
  const auto invalid = [](std::string_view text) {
    const Utf8Part part = scan_utf8(text, 0);
    return part.kind == Utf8Kind::kInvalid ? part.length : 0;
  };
  EXPECT_EQ(invalid("\x80"), 1U);
  EXPECT_EQ(invalid("\xc0\x80"), 1U);          // overlong
  EXPECT_EQ(invalid("\xe0\x80\x80"), 1U);      // overlong
  EXPECT_EQ(invalid("\xed\xa0\x80"), 1U);      // a surrogate
  EXPECT_EQ(invalid("\xf4\x90\x80\x80"), 1U);  // above U+10FFFF
  EXPECT_EQ(invalid("\xf5"), 1U);
  EXPECT_EQ(invalid("\xe2\x82x"), 2U);
  EXPECT_EQ(invalid("\xf0\x9f\x99x"), 3U);
}

TEST(ByteAlphabet, HasALetterForEveryByte) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char32_t letter = kByteAlphabet.letter(static_cast<unsigned char>(byte));
    EXPECT_EQ(kByteAlphabet.byte(letter), byte);
    EXPECT_GT(letter, 0x20U);
  }
  EXPECT_EQ(kByteAlphabet.letter(' '), U'\u0120');
  EXPECT_EQ(kByteAlphabet.letter('\n'), U'\u010A');
  EXPECT_EQ(kByteAlphabet.letter('a'), U'a');
  EXPECT_EQ(kByteAlphabet.byte(U' '), std::nullopt);
  EXPECT_EQ(kByteAlphabet.byte(U'\u4f60'), std::nullopt);
}

TEST(Unicode, KnowsDigitsBlanksAndLetters) {
  for (const char32_t c : U"0\u00b2\u00bd\u0663\u2167\u2460\U0001d7d8\U0001ccf5") {
    EXPECT_TRUE(c == 0 || is_numeric(c)) << static_cast<std::uint32_t>(c);
  }
  for (const char32_t c : U"a \u4e00\u00e9") EXPECT_FALSE(is_numeric(c));
  for (const char32_t c : U" \t\n\u0085\u00a0\u2003\u3000") {
    EXPECT_TRUE(c == 0 || is_white_space(c)) << static_cast<std::uint32_t>(c);
  }
  for (const char32_t c : U"a\u200b\ufeff\u180e") EXPECT_FALSE(is_white_space(c));
  for (const char32_t c : U"a_9\u00e9\u0301\u200d\u4f60") {
    EXPECT_TRUE(c == 0 || is_word_character(c)) << static_cast<std::uint32_t>(c);
  }
  for (const char32_t c : U"- \u00b2\u2028\U0001f642") EXPECT_FALSE(is_word_character(c));
}

TEST(Unicode, FormCComposesAndLeavesCharactersYoungerThanUnicode9Alone) {
  EXPECT_EQ(normalize("e\u0301", NormalForm::kNfc), "\u00e9");
  EXPECT_EQ(normalize("\u00e9", NormalForm::kNfd), "e\u0301");
  EXPECT_EQ(normalize("\ufb01", NormalForm::kNfkc), "fi");
  EXPECT_EQ(normalize("\u1e9b\u0323", NormalForm::kNfkd), "s\u0323\u0307");
  EXPECT_EQ(normalize(std::string_view("a\0b", 3), NormalForm::kNfc), std::string("a\0b", 3));
  EXPECT_EQ(normalize("a\u0301\u0316", NormalForm::kNfc), "\u00e1\u0316");
  EXPECT_EQ(normalize("\u1ac1\u0316", NormalForm::kNfc), "\u1ac1\u0316");
  EXPECT_EQ(normalize("\U00011935\U00011930", NormalForm::kNfc), "\U00011935\U00011930");
}

TEST(Unicode, LowerCaseIsOfOneCharacterAtATime) {
  std::string text;
  for (const char32_t c : {U'A', U'\u0130', U'\u03a3', U'\u00df', U'\u4e00'}) {
    append_lower_case(text, c);
  }
  EXPECT_EQ(text, "ai\u0307\u03c3\u00df\u4e00");
}

}  // namespace
}  // namespace tileweave

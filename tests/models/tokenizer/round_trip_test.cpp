// Properties that hold for all text, checked on random text.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/models/tokenizer/golden_data.h"
#include "tileweave/core/format.h"
#include "tileweave/models/tokenizer/utf8.h"

namespace tileweave {
namespace {

// Text of all kinds of characters, from every length of UTF-8; form C does not change it.
std::string random_text(std::mt19937_64& random) {
  const auto pick = [&random](std::uint32_t low, std::uint32_t high) {
    return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
  };
  static constexpr const char* kSnippets[] = {" ",   "  ",    "\n", "\r\n", "'s", "'LL",       "12",
                                              "<s>", "weave", "▁",  "\t",   "!?", "<|im_end|>"};
  std::string text;
  for (std::uint32_t i = pick(0, 40); i > 0; --i) {
    switch (pick(0, 6)) {
      case 0:
        text += kSnippets[pick(0, std::size(kSnippets) - 1)];
        break;
      case 1:
        append_utf8(text, pick(0, 0x7F));
        break;
      case 2:
        append_utf8(text, pick(0xA0, 0x2FF));
        break;
      case 3:
        append_utf8(text, pick(0x4E00, 0x9FFF));
        break;
      case 4:
        append_utf8(text, pick(0xE000, 0xF8FF));
        break;
      case 5:
        append_utf8(text, pick(0x1F300, 0x1F6FF));
        break;
      default:
        append_utf8(text, pick(0x100000, 0x10FFFF));
    }
  }
  return text;
}

class ByteLevel : public testing::TestWithParam<const char*> {
 protected:
  const Tokenizer tokenizer = Tokenizer::open(data_path(std::string(GetParam()) + ".json"));
};

TEST_P(ByteLevel, DecodingGivesBackAllText) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    const std::string text = random_text(random);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + in_quotes(text));
    const std::vector<std::int32_t> ids = tokenizer.encode(text, SpecialTokens::kNone);
    ASSERT_EQ(tokenizer.decode(ids, DecodeSpecial::kKeep), text);
  }
}

INSTANTIATE_TEST_SUITE_P(OfKind, ByteLevel, testing::ValuesIn(kByteLevelKinds),
                         [](const auto& kind) { return std::string(kind.param); });

class Stream : public testing::TestWithParam<const char*> {};

TEST_P(Stream, PartsAreCharactersAndMakeTheDecodedText) {
  const Tokenizer tokenizer = Tokenizer::open(data_path(std::string(GetParam()) + ".json"));
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::int32_t> id(0, tokenizer.size());
    std::uniform_int_distribution<std::int32_t> byte_id(0, 300);  // most bytes have small ids
    std::vector<std::int32_t> ids;
    while (ids.size() < seed % 50) ids.push_back(random() % 2 == 0 ? id(random) : byte_id(random));
    for (const DecodeSpecial special : {DecodeSpecial::kKeep, DecodeSpecial::kSkip}) {
      ASSERT_EQ(decode_streamed(tokenizer, ids, special), tokenizer.decode(ids, special));
    }
  }
}

TEST_P(Stream, TextComesAsSoonAsItIsCertain) {
  const Tokenizer tokenizer = Tokenizer::open(data_path(std::string(GetParam()) + ".json"));
  const std::string text = "The weaver throws the shuttle";
  const std::vector<std::int32_t> ids = tokenizer.encode(text, SpecialTokens::kNone);
  TextStream stream(tokenizer, DecodeSpecial::kSkip);
  std::string shown;
  for (const std::int32_t id : ids) {
    const std::string part = stream.push(id);
    // All of it is ASCII, and only the blank in front is dropped.
    EXPECT_TRUE(!part.empty() || shown.empty()) << id;
    shown += part;
  }
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(shown, text);
}

INSTANTIATE_TEST_SUITE_P(OfKind, Stream, testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(Stream, ACharacterOfSeveralTokensComesWhole) {
  const Tokenizer tokenizer = Tokenizer::open(data_path("qwen3.json"));
  const std::string text = "𝔗🜲";  // in no merge
  const std::vector<std::int32_t> ids = tokenizer.encode(text, SpecialTokens::kNone);
  ASSERT_GE(ids.size(), 4U);
  TextStream stream(tokenizer, DecodeSpecial::kSkip);
  std::vector<std::string> parts;
  for (const std::int32_t id : ids) {
    if (std::string part = stream.push(id); !part.empty()) parts.push_back(std::move(part));
  }
  EXPECT_EQ(parts, (std::vector<std::string>{"𝔗", "🜲"}));
  EXPECT_EQ(stream.finish(), "");
}

TEST(Stream, OutlivesTheMoveOfItsTokenizer) {
  Tokenizer first = Tokenizer::open(data_path("llama3.json"));
  const std::vector<std::int32_t> ids = first.encode("weaver", SpecialTokens::kNone);
  TextStream stream(first, DecodeSpecial::kSkip);
  const Tokenizer second = std::move(first);
  std::string text;
  for (const std::int32_t id : ids) text += stream.push(id);
  EXPECT_EQ(text + stream.finish(), "weaver");
}

TEST(Tokenizer, IsSharedByThreads) {
  const Tokenizer tokenizer = Tokenizer::open(data_path("qwen3.json"));
  std::vector<std::vector<std::int32_t>> expected;
  for (const std::string& text : golden_strings()) {
    expected.push_back(tokenizer.encode(text, SpecialTokens::kAdd));
  }
  std::vector<int> differences(4, 0);
  std::vector<std::thread> threads;
  for (int& count : differences) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < expected.size(); ++i) {
        count += tokenizer.encode(golden_strings()[i], SpecialTokens::kAdd) != expected[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(differences, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace tileweave

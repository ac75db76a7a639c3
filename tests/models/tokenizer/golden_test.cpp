// Every kind of tokenizer against what Hugging Face tokenizers answers.
#include <gtest/gtest.h>

#include "tests/models/tokenizer/golden_data.h"
#include "tileweave/core/format.h"

namespace tileweave {
namespace {

class Golden : public testing::TestWithParam<const char*> {
 protected:
  const Tokenizer tokenizer = Tokenizer::open(data_path(std::string(GetParam()) + ".json"));
  const nlohmann::json golden = read_data(std::string(GetParam()) + ".golden.json");
};

std::string fnv1a(const std::vector<std::int32_t>& ids) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::int32_t id : ids) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ (static_cast<std::uint32_t>(id) >> shift & 0xFF)) * 0x100000001b3;
    }
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

TEST_P(Golden, IdsAreThoseOfHuggingFace) {
  const std::vector<std::string>& strings = golden_strings();
  ASSERT_GE(strings.size(), 200U);
  ASSERT_EQ(golden["strings"].size(), strings.size());
  for (std::size_t i = 0; i < strings.size(); ++i) {
    SCOPED_TRACE(in_quotes(strings[i]));
    const auto expected = golden_answer(golden["strings"][i], strings[i]);
    ASSERT_TRUE(expected);
    EXPECT_EQ(tokenizer.encode(strings[i], SpecialTokens::kAdd), expected->ids);
    EXPECT_EQ(tokenizer.encode(strings[i], SpecialTokens::kNone), expected->bare);
  }
}

TEST_P(Golden, TextIsThatOfHuggingFaceWholeAndStreamed) {
  const std::vector<std::string>& strings = golden_strings();
  for (std::size_t i = 0; i < strings.size(); ++i) {
    SCOPED_TRACE(in_quotes(strings[i]));
    const auto expected = golden_answer(golden["strings"][i], strings[i]);
    ASSERT_TRUE(expected);
    EXPECT_EQ(tokenizer.decode(expected->ids, DecodeSpecial::kKeep), expected->kept);
    EXPECT_EQ(tokenizer.decode(expected->ids, DecodeSpecial::kSkip), expected->skipped);
    EXPECT_EQ(decode_streamed(tokenizer, expected->ids, DecodeSpecial::kKeep), expected->kept);
    EXPECT_EQ(decode_streamed(tokenizer, expected->ids, DecodeSpecial::kSkip), expected->skipped);
  }
}

TEST_P(Golden, RandomIdsDecodeAsInHuggingFace) {
  ASSERT_GE(golden["decoded"].size(), 50U);
  for (const nlohmann::json& answer : golden["decoded"]) {
    SCOPED_TRACE(answer[0].dump());
    const auto ids = answer[0].get<std::vector<std::int32_t>>();
    EXPECT_EQ(tokenizer.decode(ids, DecodeSpecial::kKeep), answer[1].get<std::string>());
    EXPECT_EQ(tokenizer.decode(ids, DecodeSpecial::kSkip), answer[2].get<std::string>());
    EXPECT_EQ(decode_streamed(tokenizer, ids, DecodeSpecial::kKeep), answer[1].get<std::string>());
  }
}

TEST_P(Golden, VeryLongWordsHaveTheSameIds) {
  const nlohmann::json units = read_data("strings.json")["long"];
  ASSERT_EQ(golden["long"].size(), units.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto unit = units[i][0].get<std::string>();
    SCOPED_TRACE(in_quotes(unit));
    std::string text;
    for (int n = 0; n < units[i][1].get<int>(); ++n) text += unit;
    const std::vector<std::int32_t> ids = tokenizer.encode(text, SpecialTokens::kNone);
    EXPECT_EQ(ids.size(), golden["long"][i][0].get<std::size_t>());
    EXPECT_EQ(fnv1a(ids), golden["long"][i][1].get<std::string>());
    EXPECT_EQ(tokenizer.decode(ids, DecodeSpecial::kKeep) == text,
              golden["long"][i][2].get<bool>());
  }
}

TEST_P(Golden, EveryTokenIsFoundByItsNameAndItsId) {
  std::int32_t tokens = 0;
  for (std::int32_t id = -1; id <= tokenizer.size(); ++id) {
    const auto token = tokenizer.token(id);
    if (!token) continue;
    ++tokens;
    EXPECT_EQ(tokenizer.id_of(*token), id) << in_quotes(*token);
  }
  EXPECT_EQ(tokens, tokenizer.size());  // these vocabularies have no holes
}

INSTANTIATE_TEST_SUITE_P(OfKind, Golden, testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param); });

// Parts that no published kind has, as patches of one.
TEST(GoldenVariants, AnswersAreThoseOfHuggingFace) {
  const nlohmann::json data = read_data("variants.json");
  const auto texts = data["texts"].get<std::vector<std::string>>();
  ASSERT_GE(data["variants"].size(), 45U);
  for (const nlohmann::json& variant : data["variants"]) {
    SCOPED_TRACE(variant["name"].get<std::string>());
    nlohmann::json document = read_data(variant["base"].get<std::string>() + ".json");
    for (const auto& [key, part] : variant["patch"].items()) {
      if (key == "model") {
        document[key].update(part);
      } else {
        document[key] = part;
      }
    }
    const Tokenizer tokenizer = Tokenizer::parse(document.dump(), "tokenizer.json");
    for (std::size_t i = 0; i < texts.size(); ++i) {
      SCOPED_TRACE(in_quotes(texts[i]));
      const auto expected = golden_answer(variant["strings"][i], texts[i]);
      const std::vector<std::int32_t> ids = tokenizer.encode(texts[i], SpecialTokens::kAdd);
      if (!expected) continue;
      EXPECT_EQ(ids, expected->ids);
      EXPECT_EQ(tokenizer.encode(texts[i], SpecialTokens::kNone), expected->bare);
      EXPECT_EQ(tokenizer.decode(ids, DecodeSpecial::kKeep), expected->kept);
      EXPECT_EQ(tokenizer.decode(ids, DecodeSpecial::kSkip), expected->skipped);
      EXPECT_EQ(decode_streamed(tokenizer, ids, DecodeSpecial::kKeep), expected->kept);
    }
  }
}

}  // namespace
}  // namespace tileweave

// Damaged, contradictory and unknown tokenizer.json files: each is refused in one sentence.
#include <gtest/gtest.h>

#include <functional>

#include "tests/models/tokenizer/golden_data.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

using nlohmann::json;

json small_file() {
  return json::parse(R"({
    "version": "1.0",
    "added_tokens": [{"id": 3, "content": "<s>", "special": true}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "unk_token": null, "vocab": {"a": 0, "b": 1, "ab": 2},
              "merges": [["a", "b"]]}})");
}

std::string refusal_of(const std::string& text) {
  try {
    Tokenizer::parse(text, "T.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

// The sentence for the small file after a change.
std::string refusal_after(const std::function<void(json&)>& change) {
  json file = small_file();
  change(file);
  return refusal_of(file.dump());
}

TEST(BadTokenizer, TheFileThatTheOthersDamageIsAccepted) {
  EXPECT_EQ(refusal_of(small_file().dump()), "accepted");
}

TEST(BadTokenizer, WhatIsNoJsonIsRefusedWithItsPlace) {
  const std::string whole = small_file().dump();
  EXPECT_EQ(refusal_of(""), "read T.json: valid JSON, got an error where the text ends");
  EXPECT_EQ(refusal_of(whole.substr(0, whole.size() / 2)),
            "read T.json: valid JSON, got an error where the text ends");
  EXPECT_EQ(refusal_of("{\"model\": \xff}"), "read T.json: UTF-8 text, got \"\\xff\" at byte 10");
  EXPECT_EQ(refusal_of("[1, 2]"),
            "read T.json: the whole to be an object, got an array of 2 elements");
  EXPECT_EQ(refusal_of(std::string(100'000, '[')),
            "read T.json: valid JSON, got nesting deeper than 128");
}

TEST(BadTokenizer, AFileThatIsNotThereIsNamed) {
  try {
    Tokenizer::open("no/such/tokenizer.json");
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no/such/tokenizer.json"), std::string::npos);
  }
}

struct Bad {
  const char* name;
  std::function<void(json&)> change;
  const char* sentence;
};

json nested_normalizers(int depth) {
  json inner = {{"type", "NFC"}};
  for (int i = 0; i < depth; ++i) {
    inner = {{"type", "Sequence"}, {"normalizers", json::array({inner})}};
  }
  return inner;
}

json split(const json& pattern, const char* behavior) {
  return {{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", false}};
}

json templ(const json& single, const json& special) {
  return {{"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", special}};
}

std::vector<Bad> bad_files() {
  return {
      {"another version", [](json& f) { f["version"] = "2.0"; },
       "read T.json: version to be 1.0, got the string \"2.0\""},
      {"no model", [](json& f) { f.erase("model"); }, "read T.json: the key \"model\", got none"},
      {"model null", [](json& f) { f["model"] = nullptr; },
       "read T.json: the key \"model\", got null"},
      {"model a string", [](json& f) { f["model"] = "BPE"; },
       "read T.json: model to be an object, got the string \"BPE\""},
      {"another model", [](json& f) { f["model"]["type"] = "Unigram"; },
       "read T.json: model.type to be BPE, the one model of tokens this library knows, got the "
       "string \"Unigram\""},
      {"no vocabulary", [](json& f) { f["model"].erase("vocab"); },
       "read T.json: the key \"vocab\" in model, got none"},
      {"vocabulary an array",
       [](json& f) {
         f["model"]["vocab"] = {"a", "b"};
       },
       "read T.json: model.vocab to be an object, got an array of 2 elements"},
      {"id a string", [](json& f) { f["model"]["vocab"]["a"] = "0"; },
       "read T.json: model.vocab to give \"a\" an id from 0 to 16777215, got the string \"0\""},
      {"id a fraction", [](json& f) { f["model"]["vocab"]["a"] = 0.5; },
       "read T.json: model.vocab to give \"a\" an id from 0 to 16777215, got the number 0.5"},
      {"id negative", [](json& f) { f["model"]["vocab"]["a"] = -1; },
       "read T.json: model.vocab to give \"a\" an id from 0 to 16777215, got the number -1"},
      {"id huge", [](json& f) { f["model"]["vocab"]["a"] = 4'000'000'000U; },
       "read T.json: model.vocab to give \"a\" an id from 0 to 16777215, got the number "
       "4000000000"},
      {"id beyond 64 bits", [](json& f) { f["model"]["vocab"]["a"] = 1e30; },
       "read T.json: model.vocab to give \"a\" an id from 0 to 16777215, got the number 1e+30"},
      {"one id twice", [](json& f) { f["model"]["vocab"]["b"] = 0; },
       "read T.json: model.vocab to give every token an id of its own, got 0 for \"a\" and \"b\""},
      {"no merges", [](json& f) { f["model"].erase("merges"); },
       "read T.json: the key \"merges\" in model, got none"},
      {"merges an object", [](json& f) { f["model"]["merges"] = json::object(); },
       "read T.json: model.merges to be an array, got an object"},
      {"merge of one", [](json& f) { f["model"]["merges"] = {"ab"}; },
       "read T.json: model.merges[0] to be two tokens, \"a b\" or [\"a\", \"b\"], got the string "
       "\"ab\""},
      {"merge of three",
       [](json& f) {
         f["model"]["merges"] = json::array({{"a", "b", "c"}});
       },
       "read T.json: model.merges[0] to be two tokens, \"a b\" or [\"a\", \"b\"], got an array of "
       "3 elements"},
      {"merge of numbers",
       [](json& f) {
         f["model"]["merges"] = json::array({{0, 1}});
       },
       "read T.json: model.merges[0] to be two tokens, \"a b\" or [\"a\", \"b\"], got an array of "
       "2 elements"},
      {"merge of an unknown token",
       [](json& f) {
         f["model"]["merges"] = {"a b", "a c"};
       },
       "read T.json: model.merges[1] to be of tokens and to give a token of the vocabulary, got "
       "\"c\""},
      {"merge to an unknown token", [](json& f) { f["model"]["merges"] = {"b a"}; },
       "read T.json: model.merges[0] to be of tokens and to give a token of the vocabulary, got "
       "\"ba\""},
      {"dropout", [](json& f) { f["model"]["dropout"] = 0.1; },
       "read T.json: model.dropout to be null or 0, as tokens are not chosen by chance, got the "
       "number 0.1"},
      {"prefix of subwords", [](json& f) { f["model"]["continuing_subword_prefix"] = "##"; },
       "read T.json: model.continuing_subword_prefix to be empty, anything else is not supported, "
       "got the string \"##\""},
      {"suffix of words", [](json& f) { f["model"]["end_of_word_suffix"] = "</w>"; },
       "read T.json: model.end_of_word_suffix to be empty, anything else is not supported, got "
       "the string \"</w>\""},
      {"fallback a string", [](json& f) { f["model"]["byte_fallback"] = "yes"; },
       "read T.json: model.byte_fallback to be true or false, got the string \"yes\""},
      {"added tokens an object", [](json& f) { f["added_tokens"] = json::object(); },
       "read T.json: added_tokens to be an array, got an object"},
      {"added token without content", [](json& f) { f["added_tokens"][0].erase("content"); },
       "read T.json: the key \"content\" in added_tokens[0], got none"},
      {"added token without id", [](json& f) { f["added_tokens"][0].erase("id"); },
       "read T.json: the key \"id\" in added_tokens[0], got none"},
      {"added token of a negative id", [](json& f) { f["added_tokens"][0]["id"] = -5; },
       "read T.json: added_tokens[0].id to be an integer from 0 to 16777215, got the number -5"},
      {"added token of another's id", [](json& f) { f["added_tokens"][0]["id"] = 1; },
       "read T.json: added_tokens[0] to be of an id that is not \"b\" in model.vocab, got 1 for "
       "\"<s>\""},
      {"added token of another id", [](json& f) { f["added_tokens"][0]["content"] = "a"; },
       "read T.json: added_tokens[0] to be id 0, as in model.vocab, for \"a\", got 3"},
      {"two added tokens of one id",
       [](json& f) {
         f["added_tokens"].push_back({{"id", 3}, {"content", "<t>"}});
       },
       "read T.json: added_tokens[1] to be of an id that is not \"<s>\" already, got 3 for "
       "\"<t>\""},
      {"one added token of two ids",
       [](json& f) {
         f["added_tokens"].push_back({{"id", 4}, {"content", "<s>"}});
       },
       "read T.json: added_tokens[1] to be id 3, as before, for \"<s>\", got 4"},
      {"two added tokens with one form",
       [](json& f) {
         f["normalizer"] = {{"type", "Lowercase"}};
         f["added_tokens"] = {{{"id", 3}, {"content", "<S>"}, {"normalized", true}},
                              {{"id", 4}, {"content", "<s>"}, {"normalized", true}}};
       },
       "read T.json: added_tokens to be tokens that differ in their normalized form, got \"<S>\" "
       "and \"<s>\""},
      {"unknown normalizer",
       [](json& f) {
         f["normalizer"] = {{"type", "Precompiled"}};
       },
       "read T.json: normalizer.type to be a normalizer this library knows (Sequence, NFC, NFD, "
       "NFKC, NFKD, Lowercase, Prepend, Replace, Strip), got the string \"Precompiled\""},
      {"normalizer without a type", [](json& f) { f["normalizer"] = json::object(); },
       "read T.json: the key \"type\" in normalizer, got none"},
      {"normalizers nested deeply", [](json& f) { f["normalizer"] = nested_normalizers(200); },
       "read T.json: valid JSON, got nesting deeper than 128"},
      {"unknown pre-tokenizer",
       [](json& f) {
         f["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
       },
       "read T.json: pre_tokenizer.type to be a pre-tokenizer this library knows (Sequence, "
       "ByteLevel, Split, Digits, WhitespaceSplit, Metaspace), got the string "
       "\"BertPreTokenizer\""},
      {"unknown pre-tokenizer in a sequence",
       [](json& f) {
         f["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Magic"}}}}};
       },
       "read T.json: pre_tokenizer.pretokenizers[0].type to be a pre-tokenizer this library knows "
       "(Sequence, ByteLevel, Split, Digits, WhitespaceSplit, Metaspace), got the string "
       "\"Magic\""},
      {"malformed regex",
       [](json& f) {
         f["pre_tokenizer"] = split({{"Regex", "(a"}}, "Isolated");
       },
       "read T.json: pre_tokenizer.pattern.Regex: a regular expression, got \"(a\" (end pattern "
       "with unmatched parenthesis)"},
      {"pattern of no kind",
       [](json& f) {
         f["pre_tokenizer"] = split({{"Glob", "*"}}, "Isolated");
       },
       "read T.json: pre_tokenizer.pattern to be an object with the key String or Regex, got an "
       "object"},
      {"unknown behavior",
       [](json& f) {
         f["pre_tokenizer"] = split({{"String", "-"}}, "Eaten");
       },
       "read T.json: pre_tokenizer.behavior to be Removed, Isolated, MergedWithPrevious, "
       "MergedWithNext or Contiguous, got the string \"Eaten\""},
      {"replacement of two characters",
       [](json& f) {
         f["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "__"}};
       },
       "read T.json: pre_tokenizer.replacement to be one character, got the string \"__\""},
      {"metaspace contradicts itself",
       [](json& f) {
         f["pre_tokenizer"] = {{"type", "Metaspace"},
                               {"replacement", "_"},
                               {"add_prefix_space", false},
                               {"prepend_scheme", "always"}};
       },
       "read T.json: pre_tokenizer.prepend_scheme to be never, as add_prefix_space is false, got "
       "the string \"always\""},
      {"unknown post-processor",
       [](json& f) {
         f["post_processor"] = {{"type", "BertProcessing"}};
       },
       "read T.json: post_processor.type to be a post-processor this library knows (Sequence, "
       "ByteLevel, TemplateProcessing), got the string \"BertProcessing\""},
      {"template of an unknown special token",
       [](json& f) {
         f["post_processor"] = templ({{{"SpecialToken", {{"id", "<x>"}}}}}, json::object());
       },
       "read T.json: post_processor.single[0].SpecialToken.id to be a key of special_tokens, got "
       "the string \"<x>\""},
      {"template of an unknown id",
       [](json& f) {
         f["post_processor"] = templ({{{"SpecialToken", {{"id", "<s>"}}}}},
                                     {{"<s>", {{"id", "<s>"}, {"ids", {99}}}}});
       },
       "read T.json: post_processor to be one that adds known tokens, got id 99"},
      {"template of a second text",
       [](json& f) {
         f["post_processor"] = templ({{{"Sequence", {{"id", "B"}}}}}, json::object());
       },
       "read T.json: post_processor.single[0].Sequence.id to be A, the only text of a single "
       "template, got the string \"B\""},
      {"unknown decoder",
       [](json& f) {
         f["decoder"] = {{"type", "WordPiece"}};
       },
       "read T.json: decoder.type to be a decoder this library knows (Sequence, ByteLevel, "
       "ByteFallback, Fuse, Replace, Strip, Metaspace), got the string \"WordPiece\""},
      {"decoder that strips too much",
       [](json& f) {
         f["decoder"] = {
             {"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 1'000'000'000}};
       },
       "read T.json: decoder.stop to be an integer from 0 to 1024, got the number 1000000000"},
  };
}

TEST(BadTokenizer, EachDamageHasItsSentence) {
  const std::vector<Bad> files = bad_files();
  ASSERT_GE(files.size(), 40U);
  for (const Bad& bad : files) EXPECT_EQ(refusal_after(bad.change), bad.sentence) << bad.name;
}

TEST(BadTokenizer, OneTokenTwiceInTheVocabularyIsRefused) {
  std::string text = small_file().dump();
  const std::string token = "\"a\":0,";
  text.insert(text.find(token), token);
  EXPECT_EQ(refusal_of(text), "read T.json: valid JSON, got the key \"a\" twice in one object");
}

TEST(BadTokenizer, IdsMayHaveHoles) {
  json file = small_file();
  file["model"]["vocab"]["z"] = 1000;
  file["added_tokens"][0]["id"] = 500;
  const Tokenizer tokenizer = Tokenizer::parse(file.dump(), "T.json");
  EXPECT_EQ(tokenizer.size(), 1001);
  EXPECT_EQ(tokenizer.token(499), std::nullopt);
  EXPECT_EQ(tokenizer.encode("abz<s>", SpecialTokens::kNone),
            (std::vector<std::int32_t>{2, 1000, 500}));
}

TEST(BadInput, TextThatIsNoUtf8IsRefusedWithTheByte) {
  const Tokenizer tokenizer = Tokenizer::parse(small_file().dump(), "T.json");
  const auto sentence = [&tokenizer](std::string_view text) -> std::string {
    try {
      tokenizer.encode(text, SpecialTokens::kAdd);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(sentence("ab\xff"), "encode text: UTF-8, got \"\\xff\" at byte 2");
  EXPECT_EQ(sentence("\xc3"), "encode text: UTF-8, got \"\\xc3\" at byte 0");
  EXPECT_EQ(sentence("a\xed\xa0\x80"), "encode text: UTF-8, got \"\\xed\" at byte 1");
  EXPECT_EQ(sentence("abc\xc0\x80"), "encode text: UTF-8, got \"\\xc0\" at byte 3");
  EXPECT_EQ(sentence("\xf4\x90\x80\x80"), "encode text: UTF-8, got \"\\xf4\" at byte 0");
}

TEST(BadInput, NegativeIdsAreRefusedAndUnknownOnesGiveNoText) {
  const Tokenizer tokenizer = Tokenizer::parse(small_file().dump(), "T.json");
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{2, 77, 2'000'000'000}, DecodeSpecial::kKeep),
            "ab");
  EXPECT_THROW(tokenizer.decode(std::vector<std::int32_t>{-1}, DecodeSpecial::kKeep), Error);
}

TEST(BadInput, AnUnknownTokenThatIsNoTokenIsNamedWhenItIsNeeded) {
  json file = small_file();
  file["model"]["unk_token"] = "<unk>";
  const Tokenizer tokenizer = Tokenizer::parse(file.dump(), "T.json");
  EXPECT_EQ(tokenizer.encode("ab", SpecialTokens::kNone), (std::vector<std::int32_t>{2}));
  try {
    tokenizer.encode("abc", SpecialTokens::kNone);
    FAIL() << "encoded";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "encode text: model.unk_token to be in the vocabulary, got \"<unk>\"");
  }
}

TEST(BadInput, AHostileRegularExpressionEndsWithASentence) {
  json file = small_file();
  file["pre_tokenizer"] = split({{"Regex", R"((?:a|aa)+\d)"}}, "Isolated");
  const Tokenizer tokenizer = Tokenizer::parse(file.dump(), "T.json");
  try {
    tokenizer.encode(std::string(2000, 'a'), SpecialTokens::kNone);
    FAIL() << "encoded";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("to end within its limits"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tileweave

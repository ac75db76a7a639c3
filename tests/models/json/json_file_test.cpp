#include "tileweave/models/json/json_file.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string parse_refusal(const std::string& text) {
  return refusal_of([&] { JsonFile::parse(text, "a.json"); });
}

TEST(JsonFile, ReadsEveryKindOfValue) {
  const JsonFile file = JsonFile::parse(
      R"({"i": -3, "f": 1.5, "s": "é\n", "b": true, "n": null, "a": [1, [2, {"x": 4}]], "o": {}})",
      "a.json");
  const JsonNode root = file.root();
  EXPECT_EQ(root.at("i").integer(-3, 3), -3);
  EXPECT_EQ(root.at("i").number(-10, 10), -3.0);
  EXPECT_EQ(root.at("f").number(0, 2), 1.5);
  EXPECT_EQ(root.at("s").string(), "é\n");
  EXPECT_TRUE(root.at("b").boolean());
  EXPECT_FALSE(root.find("n"));
  EXPECT_FALSE(root.find("gone"));
  EXPECT_EQ(root.at("a").length(), 2u);
  EXPECT_EQ(root.at("a").element(1).element(1).at("x").integer(0, 9), 4);
  EXPECT_EQ(root.at("a").element(1).element(1).at("x").path(), "a[1][1].x");
  EXPECT_TRUE(root.at("o").is_object());
  EXPECT_EQ(file.json(), nlohmann::json::parse(file.json().dump()));
}

TEST(JsonFile, OutlivesTheHandleItWasParsedInto) {
  JsonFile first = JsonFile::parse(R"({"k": "v"})", "a.json");
  const JsonFile second = first;
  const JsonNode node = second.root().at("k");
  first = JsonFile::parse("1", "b.json");
  EXPECT_EQ(node.string(), "v");
  EXPECT_EQ(node.file(), "a.json");
}

TEST(JsonFile, SaysWhereTheTextIsNoJson) {
  EXPECT_EQ(parse_refusal(""), "read a.json: valid JSON, got an error where the text ends");
  EXPECT_EQ(parse_refusal("{"), "read a.json: valid JSON, got an error where the text ends");
  EXPECT_EQ(parse_refusal("{\n\"a\": x}"),
            "read a.json: valid JSON, got an error at line 2, column 6");
  EXPECT_EQ(parse_refusal("[1] 2"), "read a.json: valid JSON, got an error at line 1, column 5");
  EXPECT_NE(parse_refusal("[1, NaN]"), "");
  EXPECT_NE(parse_refusal("[1, Infinity]"), "");
  EXPECT_NE(parse_refusal("['a']"), "");
  EXPECT_NE(parse_refusal("[1,]"), "");
  EXPECT_NE(parse_refusal("[01]"), "");
  EXPECT_NE(parse_refusal(std::string("[1\0]", 4)), "");
  EXPECT_NE(parse_refusal("\"\\ud800\""), "");
  EXPECT_NE(parse_refusal("\"a\nb\""), "");
  EXPECT_NE(parse_refusal("[1e999]").find("beyond the range of double"), std::string::npos);
}

TEST(JsonFile, RefusesInvalidUtf8) {
  EXPECT_EQ(parse_refusal("[\"\xff\"]"), R"(read a.json: UTF-8 text, got "\xff" at byte 2)");
  EXPECT_NE(parse_refusal("\"\xc0\x80\"").find("UTF-8"), std::string::npos);
  EXPECT_NE(parse_refusal("\"\xed\xa0\x80\"").find("UTF-8"), std::string::npos);
  EXPECT_NE(parse_refusal("\"\xf4\x90\x80\x80\"").find("UTF-8"), std::string::npos);
  EXPECT_NE(parse_refusal("\"\xe2\x82").find("UTF-8"), std::string::npos);
}

TEST(JsonFile, RefusesAKeyThatStandsTwiceInOneObject) {
  EXPECT_EQ(parse_refusal(R"({"a": 1, "b": {"a": 2}, "a": 3})"),
            R"(read a.json: valid JSON, got the key "a" twice in one object)");
  EXPECT_EQ(parse_refusal(R"([{"a": 1}, {"a": 1}])"), "");
  // The same key, spelt in two ways.
  EXPECT_NE(parse_refusal(R"({"a": 1, "\u0061": 1})"), "");
}

TEST(JsonFile, BoundsTheDepth) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_EQ(parse_refusal(nested(kMaxJsonDepth)), "");
  EXPECT_NE(parse_refusal(nested(kMaxJsonDepth + 1)).find("nesting deeper"), std::string::npos);
  EXPECT_NE(parse_refusal(std::string(1'000'000, '[')).find("nesting deeper"), std::string::npos);
}

TEST(JsonNode, NamesFileKeyAndValueOfAWrongType) {
  const JsonFile file = JsonFile::parse(
      R"({"o": {"i": "3", "f": 3.0, "big": 18446744073709551615, "huge": 1e30, "b": 0,
          "a": [1, null], "n": null}})",
      "a.json");
  const JsonNode o = file.root().at("o");
  const auto expect = [](const std::string& sentence, const std::function<void()>& action) {
    EXPECT_EQ(refusal_of(action), sentence);
  };
  expect(R"(read a.json: o.i to be an integer from 1 to 9, got the string "3")",
         [&] { o.at("i").integer(1, 9); });
  expect("read a.json: o.f to be an integer from 1 to 9, got the number 3.0",
         [&] { o.at("f").integer(1, 9); });
  expect("read a.json: o.b to be an integer from 1 to 9, got the number 0",
         [&] { o.at("b").integer(1, 9); });
  expect(
      "read a.json: o.big to be an integer from 0 to 9223372036854775807, got the number "
      "18446744073709551615",
      [&] { o.at("big").integer(0, std::numeric_limits<std::int64_t>::max()); });
  expect("read a.json: o.huge to be a number from 0.0 to 1.5, got the number 1e+30",
         [&] { o.at("huge").number(0, 1.5); });
  expect("read a.json: o.b to be true or false, got the number 0", [&] { o.at("b").boolean(); });
  expect("read a.json: o.b to be a string, got the number 0", [&] { o.at("b").string(); });
  expect("read a.json: o.a to be an object, got an array of 2 elements",
         [&] { o.at("a").find("x"); });
  expect("read a.json: o.b to be an array, got the number 0", [&] { o.at("b").length(); });
  expect("read a.json: o.a[1] to be a string, got null", [&] { o.at("a").element(1).string(); });
  expect(R"(read a.json: the key "gone" in o, got none)", [&] { o.at("gone"); });
  expect(R"(read a.json: the key "n" in o, got null)", [&] { o.at("n"); });
  expect("read a.json: the whole to be an array, got an object", [&] { file.root().length(); });
}

TEST(JsonNode, KeepsSentencesShortAndPrintable) {
  const JsonFile keys = JsonFile::parse(
      "{\"a b\\u001b[31m\": {\"\": 1, \"" + std::string(10'000, 'k') + "\": 1}}", "a.json");
  const JsonNode inner = keys.root().at("a b\x1b[31m");
  EXPECT_EQ(refusal_of([&] { inner.at("").boolean(); }),
            R"(read a.json: "a b\x1b[31m"."" to be true or false, got the number 1)");
  EXPECT_LT(refusal_of([&] { inner.at(std::string(10'000, 'k')).boolean(); }).size(), 200u);
  const std::string text = "[\"" + std::string(10'000, 'x') + "\", \"\\u0007\\u009b\\\"\"]";
  const JsonFile file = JsonFile::parse(text, "a.json");
  EXPECT_LT(refusal_of([&] { file.root().element(0).boolean(); }).size(), 200u);
  EXPECT_NE(refusal_of([&] { file.root().element(1).boolean(); }).find(R"("\x07\xc2\x9b)"),
            std::string::npos)
      << refusal_of([&] { file.root().element(1).boolean(); });
}

}  // namespace
}  // namespace tileweave

#include "tileweave/trace/escape.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace tileweave {
namespace {

TEST(JsonQuote, EscapesWhatWouldEndTheStringOrTheScript) {
  EXPECT_EQ(json_quote("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(json_quote("\n\t\x01\x7F"), R"("\u000a\u0009\u0001\u007f")");
  EXPECT_EQ(json_quote("</script>&"), R"("\u003c/script\u003e\u0026")");
  EXPECT_EQ(json_quote(std::string_view("a\0b", 3)), R"("a\u0000b")");
}

TEST(JsonQuote, WritesNonAsciiAsUnits) {
  EXPECT_EQ(json_quote("\xC3\xA9"), R"("\u00e9")");
  EXPECT_EQ(json_quote("\xE2\x80\xA8"), R"("\u2028")");
  EXPECT_EQ(json_quote("\xF0\x9F\x98\x80"), R"("\ud83d\ude00")");
}

TEST(JsonQuote, ReplacesInvalidUtf8) {
  EXPECT_EQ(json_quote("a\xFF!"), R"("a\ufffd!")");
  EXPECT_EQ(json_quote("\xC0\xAF"), R"("\ufffd\ufffd")") << "overlong slash";
  EXPECT_EQ(json_quote("\xE0\x80\xAF"), R"("\ufffd\ufffd\ufffd")") << "overlong slash";
  EXPECT_EQ(json_quote("\xED\xA0\x80"), R"("\ufffd\ufffd\ufffd")") << "surrogate";
  EXPECT_EQ(json_quote("\xF4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")") << "above U+10FFFF";
  EXPECT_EQ(json_quote("\xE2\x82"), R"("\ufffd")") << "cut short";
  EXPECT_EQ(json_quote("\xE2\x82x"), R"("\ufffdx")");
}

TEST(JsonQuote, OfAnyBytesIsAsciiAndParses) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::string bytes(random() % 12, '\0');
    for (char& byte : bytes)
      byte = static_cast<char>(random() % 4 == 0 ? random() : 0x80 | random());
    const std::string quoted = json_quote(bytes);
    for (const char c : quoted) EXPECT_TRUE(c >= 0x20 && c < 0x7F);
    // The parser of the test replaces ill-formed input by the same rule.
    const std::string theirs =
        nlohmann::json(bytes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    EXPECT_EQ(nlohmann::json::parse(quoted), nlohmann::json::parse(theirs));
  }
}

TEST(HtmlEscape, LeavesNoMarkup) {
  EXPECT_EQ(html_escape("<b a=\"'\">&"), "&lt;b a=&quot;&#39;&quot;&gt;&amp;");
  EXPECT_EQ(html_escape("\xC3\xA9\xFF\n"), "\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Printable, KeepsATableRowOnOneLine) {
  EXPECT_EQ(printable("a\r\n\x1B[2Jb"), "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD[2Jb");
  EXPECT_EQ(num_code_points(printable("\xC3\xA9\xFFx")), 3u);
}

}  // namespace
}  // namespace tileweave

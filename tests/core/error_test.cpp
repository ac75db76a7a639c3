#include "tileweave/core/error.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tileweave/core/format.h"

namespace tileweave {
namespace {

TEST(Error, IsOneSentenceOfOperationExpectedAndGot) {
  const Error error("verify plan", "3 arrivals", "2");
  EXPECT_STREQ(error.what(), "verify plan: 3 arrivals, got 2");
  EXPECT_EQ(error.operation(), "verify plan");
  EXPECT_EQ(error.expected(), "3 arrivals");
  EXPECT_EQ(error.got(), "2");
  EXPECT_STREQ(Error("open", "a readable file").what(), "open: a readable file");
}

TEST(Error, RequireThrowsOnlyWhenTheConditionFails) {
  EXPECT_NO_THROW(require(true, "load", "anything"));
  EXPECT_THROW(require(false, "load", "a file", "a folder"), Error);
}

TEST(Format, WritesCoordinatesAndBoxes) {
  EXPECT_EQ(to_string(Coord{2, 0}), "(2, 0)");
  EXPECT_EQ(to_string(Coord{}), "()");
  Box box;
  box.begin = {0, 128};
  box.size = {64, 128};
  EXPECT_EQ(to_string(box), "[0:64, 128:256]");
  box.begin = {1};
  box.size = {std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(to_string(box), "[1+9223372036854775807]");
}

TEST(Format, QuotesForeignTextSoThatItCanBePrinted) {
  EXPECT_EQ(in_quotes("a b"), "\"a b\"");
  EXPECT_EQ(in_quotes(""), "\"\"");
  EXPECT_EQ(in_quotes("\"\\\n\x7f"), "\"\\\"\\\\\\x0a\\x7f\"");
  EXPECT_EQ(in_quotes("é€😀"), "\"é€😀\"");
  EXPECT_EQ(in_quotes("\xff\xe2\x82"), "\"\\xff\\xe2\\x82\"");
  EXPECT_EQ(in_quotes("\xc2\x9b"), "\"\\xc2\\x9b\"");  // a control of two bytes
  EXPECT_LT(in_quotes(std::string(1000, 'x')).size(), 90u);
}

TEST(Format, FindsWhereUtf8Ends) {
  EXPECT_EQ(valid_utf8_prefix("é€😀"), 9u);
  EXPECT_EQ(valid_utf8_prefix("a\xe2\x82"), 1u);
  EXPECT_EQ(valid_utf8_prefix("a\xc0\x80"), 1u);
  EXPECT_EQ(valid_utf8_prefix("\xed\xa0\x80"), 0u);      // a surrogate
  EXPECT_EQ(valid_utf8_prefix("\xf0\x8f\xbf\xbf"), 0u);  // overlong
  EXPECT_EQ(valid_utf8_prefix("\xf4\x90\x80\x80"), 0u);  // beyond U+10FFFF
}

TEST(Format, WritesBytesForPeople) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(640), "640 B");
  EXPECT_EQ(human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(human_bytes(std::uint64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(human_bytes(std::uint64_t{1} << 53), "8192.0 TiB");
}

}  // namespace
}  // namespace tileweave

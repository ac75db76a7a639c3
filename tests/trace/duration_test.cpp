#include "tileweave/trace/duration.h"

#include <gtest/gtest.h>

namespace tileweave {
namespace {

TEST(FormatDuration, ScalesNanoseconds) {
  EXPECT_EQ(format_duration(0, "ns"), "0 ns");
  EXPECT_EQ(format_duration(999, "ns"), "999 ns");
  EXPECT_EQ(format_duration(1234, "ns"), "1.234 \xC2\xB5s");
  EXPECT_EQ(format_duration(45'600'000, "ns"), "45.60 ms");
  EXPECT_EQ(format_duration(7'000'000'000, "ns"), "7.000 s");
}

TEST(FormatDuration, LeavesUnitsOfAVirtualClockWhole) {
  EXPECT_EQ(format_duration(1, "ticks"), "1 tick");
  EXPECT_EQ(format_duration(12'345, "ticks"), "12,345 ticks");
}

TEST(FormatShare, OfNothingIsADash) {
  EXPECT_EQ(format_share(1, 3), "33.3 %");
  EXPECT_EQ(format_share(0, 0), "\xE2\x80\x93");
}

TEST(FormatCount, GroupsThousands) {
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1'234'567), "1,234,567");
}

}  // namespace
}  // namespace tileweave

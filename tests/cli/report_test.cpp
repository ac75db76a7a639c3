// What the verbs print, without measuring anything.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "cli/doctor.h"
#include "cli/findings.h"
#include "cli/hop_report.h"
#include "tileweave/core/error.h"

namespace tileweave::cli {
namespace {

namespace fs = std::filesystem;

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoMiddleValues) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({8, 1, 4, 2}), 3);
  EXPECT_EQ(median({2, 2}), 2);
  EXPECT_THROW(median({}), Error);
}

TEST(FindingsTable, GroupsByDeviceAndKeepsStrangeNamesOnOneLine) {
  const std::vector<Finding> findings = {
      {"cpu", "cores", FindingStatus::kOk, "2", ""},
      {"cuda", "GPU", FindingStatus::kAttention, "a\nb\xff", "run on the emulated device"},
      {"cuda", "x", FindingStatus::kFailed, "y", ""}};
  EXPECT_EQ(findings_table(findings),
            "device cpu\n"
            "  ok         cores  2\n"
            "device cuda\n"
            "  attention  GPU    a\xef\xbf\xbd"
            "b\xef\xbf\xbd\n"
            "                    -> run on the emulated device\n"
            "  failed     x      y\n");
  const std::string json = to_text(findings_json(findings));
  EXPECT_TRUE(Json::accept(json)) << json;
}

TEST(HopTable, GivesMedianLeastAndMostAndNamesDowngrades) {
  HopReport report{
      .device = "cpu", .machine = "m", .notice = "n", .blocks = 2, .threads = 256, .hops = 8};
  report.arms = {{.name = "serial", .us_per_hop = {3, 1, 2}},
                 {.name = "tile none", .us_per_hop = {5}, .remark = downgrade_remark(3, 8)}};
  const std::string table = hop_table(report);
  EXPECT_NE(table.find("  serial          2.000       1.000       3.000  us a hop\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("us a hop; 3 of 7 edges ran as full dependencies\n"), std::string::npos)
      << table;
  EXPECT_EQ(downgrade_remark(0, 8), "");
  const Json json = hop_json(report);
  EXPECT_EQ(json.at("arms").at(0).at("median_us_per_hop"), 2.0);
}

class KeepLaunchOrder : public ::testing::Test {
 protected:
  KeepLaunchOrder() {
    std::string name = (fs::temp_directory_path() / "tileweave-keep-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("make temporary folder", name);
    folder_ = name;
  }
  ~KeepLaunchOrder() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  const LaunchOrderRecord record_ = {"GPU", "1", {1000, 0}, {1000, 0}};
  std::string folder_;
};

TEST_F(KeepLaunchOrder, StoresWhatAProgramFindsThere) {
  std::ostringstream err;
  const std::string path = keep_launch_order(record_, folder_, err);
  EXPECT_EQ(path, launch_order_path(folder_));
  EXPECT_EQ(err.str(), "");
  EXPECT_EQ(stored_launch_order("GPU", "1", path), LaunchOrder::kTrusted);
}

TEST_F(KeepLaunchOrder, WarnsInOneSentenceWhereItCannotStore) {
  std::ostringstream err;
  EXPECT_EQ(keep_launch_order(record_, "/dev/null/cache", err), "");
  EXPECT_EQ(err.str().rfind("tileweave doctor: warning: ", 0), 0U) << err.str();
  EXPECT_NE(err.str().find("/dev/null/cache/launch_order.json"), std::string::npos) << err.str();
  EXPECT_EQ(err.str().find('\n'), err.str().size() - 1);
}

}  // namespace
}  // namespace tileweave::cli

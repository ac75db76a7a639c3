// A trace that cannot be written leaves no file, and an unwritable path is named.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/trace/example_traces.h"
#include "tileweave/core/error.h"
#include "tileweave/trace/perfetto.h"
#include "tileweave/trace/timeline_html.h"

namespace tileweave {
namespace {

namespace fs = std::filesystem;

class UnwritablePath : public ::testing::Test {
 protected:
  UnwritablePath() {
    std::string name = (fs::temp_directory_path() / "tileweave-trace-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("make temporary folder", name);
    folder_ = name;
  }
  ~UnwritablePath() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  fs::path folder_;
};

TEST_F(UnwritablePath, IsRefusedByBothForms) {
  const fs::path path = folder_ / "missing" / "out.json";
  EXPECT_THROW(write_perfetto(testing::figure1_overlap(), path.string()), Error);
  EXPECT_THROW(write_timeline_html(testing::figure1_overlap(), path.string()), Error);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(UnwritablePath, IsNotEvenOpenedForAFaultyTrace) {
  Trace trace = testing::figure1_overlap();
  trace.records[0].end_ns = 99;
  trace.records[0].begin_ns = 100;
  EXPECT_THROW(write_perfetto(trace, (folder_ / "a.json").string()), Error);
  EXPECT_THROW(write_timeline_html(trace, (folder_ / "a.html").string()), Error);
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace tileweave

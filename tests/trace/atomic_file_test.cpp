#include "tileweave/trace/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/trace/example_traces.h"
#include "tileweave/core/error.h"
#include "tileweave/trace/perfetto.h"
#include "tileweave/trace/timeline_html.h"

namespace tileweave {
namespace {

namespace fs = std::filesystem;

class AtomicFile : public ::testing::Test {
 protected:
  AtomicFile() {
    std::string name = (fs::temp_directory_path() / "tileweave-trace-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("make temporary folder", name);
    folder_ = name;
  }
  ~AtomicFile() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::size_t num_files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string refusal_of(const fs::path& path, const std::string& text = "x") {
    try {
      write_file_atomically(path.string(), text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

TEST_F(AtomicFile, WritesAndReplacesAndLeavesNothingElse) {
  const fs::path path = folder_ / "out.json";
  write_file_atomically(path.string(), "first");
  write_file_atomically(path.string(), "second");
  EXPECT_EQ(read(path), "second");
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(AtomicFile, NamesAnUnwritablePathAndLeavesNoFile) {
  const fs::path path = folder_ / "missing" / "out.json";
  EXPECT_NE(refusal_of(path).find(path.string()), std::string::npos);
  EXPECT_THROW(write_perfetto(testing::figure1_overlap(), path.string()), Error);
  EXPECT_THROW(write_timeline_html(testing::figure1_overlap(), path.string()), Error);
  EXPECT_EQ(num_files(), 0u);
}

// A pipe stands in for devices: were the check broken, the test would replace what it is given.
TEST_F(AtomicFile, RefusesWhatIsNotARegularFile) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(refusal_of(folder_).find("a folder"), std::string::npos);
  EXPECT_NE(refusal_of(pipe).find(pipe.string()), std::string::npos);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(num_files(), 1u);
  EXPECT_NE(refusal_of(""), "");
}

TEST_F(AtomicFile, FollowsASymbolicLink) {
  write_file_atomically((folder_ / "real").string(), "old");
  fs::create_symlink("real", folder_ / "link");
  write_file_atomically((folder_ / "link").string(), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read(folder_ / "real"), "new");
}

TEST_F(AtomicFile, KeepsTheOldFileWhenTheDiskIsFull) {
  const fs::path path = folder_ / "out.json";
  write_file_atomically(path.string(), "old");
  // A limit on file sizes stands in for a full disk: the write fails half-way.
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit old_limit {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  struct rlimit small = old_limit;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string refusal = refusal_of(path, std::string(100'000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_NE(refusal.find(path.string()), std::string::npos);
  EXPECT_EQ(read(path), "old");
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(AtomicFile, IsNotEvenOpenedForAFaultyTrace) {
  Trace trace = testing::figure1_overlap();
  trace.records[0].end_ns = 99;
  trace.records[0].begin_ns = 100;
  EXPECT_THROW(write_perfetto(trace, (folder_ / "a.json").string()), Error);
  EXPECT_THROW(write_timeline_html(trace, (folder_ / "a.html").string()), Error);
  EXPECT_EQ(num_files(), 0u);
}

}  // namespace
}  // namespace tileweave

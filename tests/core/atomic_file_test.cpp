#include "tileweave/core/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
 protected:
  AtomicFileTest() {
    std::string name = (fs::temp_directory_path() / "tileweave-core-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("make temporary folder", name);
    folder_ = name;
  }
  ~AtomicFileTest() override {
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

TEST_F(AtomicFileTest, WritesStraightThroughANamedPipeWhereAskedTo) {
  const fs::path path = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(refusal_of(path).find("not a regular file"), std::string::npos);
  EXPECT_TRUE(is_pipe(path.string()));
  EXPECT_FALSE(is_pipe(folder_.string()));
  EXPECT_FALSE(is_pipe((folder_ / "missing").string()));
  std::string seen;
  std::thread reader([&] { seen = read(path); });
  {
    AtomicFile file(path.string(), NamedPipe::kWriteThrough);
    file.write("first ");
    file.write("second");
    file.commit();
  }
  reader.join();
  EXPECT_EQ(seen, "first second");
  EXPECT_TRUE(is_pipe(path.string())) << "and stays one";
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(AtomicFileTest, WritesAndReplacesAndLeavesNothingElse) {
  const fs::path path = folder_ / "out.json";
  write_file_atomically(path.string(), "first");
  write_file_atomically(path.string(), "second");
  EXPECT_EQ(read(path), "second");
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(AtomicFileTest, NamesAnUnwritablePathAndLeavesNoFile) {
  const fs::path path = folder_ / "missing" / "out.json";
  EXPECT_NE(refusal_of(path).find(path.string()), std::string::npos);
  EXPECT_EQ(num_files(), 0u);
}

// A pipe stands in for devices: were the check broken, the test would replace what it is given.
TEST_F(AtomicFileTest, RefusesWhatIsNotARegularFile) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(refusal_of(folder_).find("a folder"), std::string::npos);
  EXPECT_NE(refusal_of(pipe).find(pipe.string()), std::string::npos);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(num_files(), 1u);
  EXPECT_NE(refusal_of(""), "");
}

TEST_F(AtomicFileTest, FollowsASymbolicLink) {
  write_file_atomically((folder_ / "real").string(), "old");
  fs::create_symlink("real", folder_ / "link");
  write_file_atomically((folder_ / "link").string(), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read(folder_ / "real"), "new");
}

TEST_F(AtomicFileTest, KeepsTheOldFileWhenTheDiskIsFull) {
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

TEST_F(AtomicFileTest, LeavesNothingOfAFileThatIsNotFinished) {
  const fs::path path = folder_ / "out.bin";
  {
    AtomicFile file(path.string());
    file.write("first");
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_EQ(num_files(), 0u);
  AtomicFile file(path.string());
  file.write("first");
  file.write(" second");
  file.commit();
  EXPECT_EQ(read(path), "first second");
  EXPECT_EQ(num_files(), 1u);
}

}  // namespace
}  // namespace tileweave

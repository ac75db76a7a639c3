#include "tileweave/core/file_map.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

namespace fs = std::filesystem;

class FileMapTest : public ::testing::Test {
 protected:
  FileMapTest() {
    std::string name = (fs::temp_directory_path() / "tileweave-core-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("make temporary folder", name);
    folder_ = name;
  }
  ~FileMapTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  static std::string refusal_of(const std::string& path) {
    try {
      require_no_git_lfs_pointer(FileMap::open(path));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

TEST_F(FileMapTest, ShowsTheBytesAndOutlivesTheName) {
  const std::string path = write("a", std::string("x\0y", 3));
  FileMap file = FileMap::open(path);
  fs::remove(path);
  const std::byte* const data = file.bytes().data();
  FileMap moved = std::move(file);
  EXPECT_EQ(moved.text(), std::string_view("x\0y", 3));
  EXPECT_EQ(moved.bytes().data(), data);
  EXPECT_EQ(moved.path(), path);
  moved = FileMap::open(write("b", "z"));
  EXPECT_EQ(moved.text(), "z");
}

TEST_F(FileMapTest, OpensAnEmptyFileAndFollowsALink) {
  EXPECT_EQ(FileMap::open(write("empty", "")).size(), 0u);
  write("real", "text");
  fs::create_symlink("real", folder_ / "link");
  EXPECT_EQ(FileMap::open((folder_ / "link").string()).text(), "text");
}

TEST_F(FileMapTest, NamesWhatCannotBeRead) {
  const std::string folder = folder_.string();
  const std::string expected = "/gone: a readable regular file, got no such file";
  EXPECT_EQ(refusal_of(folder + "/gone"), "read file " + folder + expected);
  EXPECT_NE(refusal_of(write("a", "x") + "/below").find("no such file"), std::string::npos);
  EXPECT_NE(refusal_of(folder).find("got a folder"), std::string::npos);
  EXPECT_NE(refusal_of(""), "");
  EXPECT_NE(refusal_of(std::string("a\0b", 3)).find("zero byte"), std::string::npos);
  fs::create_symlink("nowhere", folder_ / "broken");
  EXPECT_NE(refusal_of(folder + "/broken").find("no such file"), std::string::npos);
  ASSERT_EQ(::mkfifo((folder + "/pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal_of(folder + "/pipe").find("not a regular file"), std::string::npos);
}

TEST_F(FileMapTest, NamesAMissingPermission) {
  const std::string path = write("secret", "x");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const uid_t user = ::geteuid();
  const bool is_root = user == 0;  // who may read everything, so the test becomes somebody else
  ASSERT_EQ(::seteuid(is_root ? 65534 : user), 0);
  const std::string refusal = refusal_of(path);
  ASSERT_EQ(::seteuid(user), 0);
  EXPECT_NE(refusal.find("no permission"), std::string::npos) << refusal;
}

TEST_F(FileMapTest, KnowsAGitLfsPointer) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 269060552\n";
  EXPECT_NE(refusal_of(write("a", pointer)).find("a Git LFS pointer"), std::string::npos);
  EXPECT_EQ(refusal_of(write("b", pointer + std::string(2000, ' '))), "");
  EXPECT_EQ(refusal_of(write("c", "version 1")), "");
}

}  // namespace
}  // namespace tileweave

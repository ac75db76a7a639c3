#include "tileweave/runtime/launch_order_record.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

namespace fs = std::filesystem;

const LaunchOrderRecord kKept = {"GPU A", "580.1", {1000, 0}, {1000, 0}};

/// Sets an environment variable (or removes it) until the end of the scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  ~ScopedVariable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class LaunchOrderFile : public ::testing::Test {
 protected:
  LaunchOrderFile() {
    std::string name = (fs::temp_directory_path() / "tileweave-order-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("make temporary folder", name);
    folder_ = name;
    path_ = launch_order_path((folder_ / "a" / "b").string());
  }
  ~LaunchOrderFile() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& text) const {
    fs::create_directories(fs::path(path_).parent_path());
    std::ofstream(path_, std::ios::binary) << text;
  }
  LaunchOrder stored(const LaunchOrderRecord& record = kKept) const {
    return stored_launch_order(record.gpu, record.driver, path_);
  }
  static std::string refusal_of(const LaunchOrderRecord& record, const std::string& path) {
    try {
      store_launch_order(record, path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
  std::string path_;
};

TEST(LaunchOrderRecord, IsTrustedOnlyAfterAThousandCleanLaunchesOfBothKinds) {
  EXPECT_EQ(launch_order_of(kKept), LaunchOrder::kTrusted);
  for (const LaunchOrderRecord& doubtful :
       {LaunchOrderRecord{"g", "d", {999, 0}, {1000, 0}},
        LaunchOrderRecord{"g", "d", {1000, 0}, {999, 0}},
        LaunchOrderRecord{"g", "d", {100000, 1}, {100000, 0}},
        LaunchOrderRecord{"g", "d", {100000, 0}, {100000, 1}},
        LaunchOrderRecord{"g", "d", {1000, 0}, {0, 0}}, LaunchOrderRecord{"g", "d", {}, {}}}) {
    EXPECT_EQ(launch_order_of(doubtful), LaunchOrder::kNotTrusted)
        << doubtful.equal.launches << " " << doubtful.unequal.launches;
  }
}

TEST_F(LaunchOrderFile, ComesBackForTheSameGpuAndDriverAlone) {
  EXPECT_EQ(stored(), LaunchOrder::kNotTrusted) << "there is no file yet";
  store_launch_order(kKept, path_);
  EXPECT_EQ(stored(), LaunchOrder::kTrusted);
  EXPECT_EQ(stored_launch_order("GPU A", "580.2", path_), LaunchOrder::kNotTrusted);
  EXPECT_EQ(stored_launch_order("GPU B", "580.1", path_), LaunchOrder::kNotTrusted);
  EXPECT_EQ(stored_launch_order("", "", path_), LaunchOrder::kNotTrusted);
}

TEST_F(LaunchOrderFile, ReplacesTheSamePairAndKeepsTheOthers) {
  const LaunchOrderRecord other = {"GPU \"B\"\n\xc3\xa9", "1", {5000, 0}, {5000, 0}};
  store_launch_order(kKept, path_);
  store_launch_order(other, path_);
  EXPECT_EQ(stored(), LaunchOrder::kTrusted);
  EXPECT_EQ(stored(other), LaunchOrder::kTrusted);
  LaunchOrderRecord broken = kKept;
  broken.unequal = {2000, 3};
  store_launch_order(broken, path_);
  EXPECT_EQ(stored(), LaunchOrder::kNotTrusted);
  EXPECT_EQ(stored(other), LaunchOrder::kTrusted);
  store_launch_order(kKept, path_);
  EXPECT_EQ(stored(), LaunchOrder::kTrusted) << "the older finding is gone: " << read(path_);
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path_).parent_path()), {}), 1)
      << "a temporary file stayed";
}

TEST_F(LaunchOrderFile, TrustsNothingThatIsDamagedOrNotItsOwn) {
  store_launch_order(kKept, path_);
  const std::string good = read(path_);
  const auto replaced = [&good](const std::string& from, const std::string& to) {
    const std::size_t at = good.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return std::string(good).replace(at, from.size(), to);
  };
  write(replaced("GPU A", "GPU A"));
  EXPECT_EQ(stored(), LaunchOrder::kTrusted) << "the unchanged text must be good";
  for (const std::string& text :
       {std::string(),
        std::string("{"),
        std::string("null"),
        std::string("[]"),
        std::string("{}"),
        std::string(100000, '['),
        std::string("\0\xff\xfe", 3),
        good.substr(0, good.size() / 2),
        good + "x",
        replaced("tileweave launch", "another"),
        replaced("\"version\": 1", "\"version\": 2"),
        replaced("\"version\": 1", "\"version\": \"1\""),
        replaced("\"inversions\": 0", "\"inversions\": -1"),
        replaced("\"inversions\": 0", "\"inversions\": 0.0"),
        replaced("\"inversions\": 0", "\"inversions\": \"0\""),
        replaced("\"inversions\": 0", "\"inversion\": 0"),
        replaced("\"launches\": 1000", "\"launches\": 18446744073709551615"),
        replaced("\"launches\": 1000", "\"launches\": 1e400"),
        replaced("\"equal\"", "\"Equal\""),
        replaced("\"gpu\": \"GPU A\"", "\"gpu\": 3"),
        replaced("\"records\": [", "\"records\": [7, "),
        replaced("\"records\": [", "\"records\": {}, \"x\": ["),
        std::string(2 << 20, ' ') + good}) {
    write(text);
    EXPECT_EQ(stored(), LaunchOrder::kNotTrusted) << text.substr(0, 400);
  }
  store_launch_order(kKept, path_);
  EXPECT_EQ(stored(), LaunchOrder::kTrusted) << "a damaged file must be replaced";
}

TEST_F(LaunchOrderFile, WithTwoRecordsOfOnePairTheWorseCounts) {
  store_launch_order(kKept, path_);
  std::string text = read(path_);
  const std::size_t begin = text.find('[') + 1;
  std::string record = text.substr(begin, text.rfind(']') - begin);
  std::string worse = record;
  worse.replace(worse.find("\"inversions\": 0"), 15, "\"inversions\": 1");
  write(text.substr(0, begin) + worse + "," + record + "]" + text.substr(text.rfind(']') + 1));
  EXPECT_EQ(stored(), LaunchOrder::kNotTrusted);
  write(text.substr(0, begin) + record + "," + worse + "]" + text.substr(text.rfind(']') + 1));
  EXPECT_EQ(stored(), LaunchOrder::kNotTrusted);
}

TEST_F(LaunchOrderFile, AFolderOrAPipeInItsPlaceIsNoRecordAndNoHang) {
  fs::create_directories(path_);
  EXPECT_EQ(stored(), LaunchOrder::kNotTrusted);
  EXPECT_NE(refusal_of(kKept, path_).find(path_), std::string::npos);
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(stored(), LaunchOrder::kNotTrusted);
  EXPECT_NE(refusal_of(kKept, path_).find(path_), std::string::npos);
}

TEST_F(LaunchOrderFile, StoringNamesTheFileThatCannotBeWritten) {
  std::ofstream(folder_ / "file") << "x";
  const std::string path = launch_order_path((folder_ / "file" / "sub").string());
  EXPECT_NE(refusal_of(kKept, path).find(path), std::string::npos);
  EXPECT_EQ(read(folder_ / "file"), "x");
  EXPECT_NE(refusal_of(kKept, "").find("XDG_CACHE_HOME"), std::string::npos);
  EXPECT_NE(refusal_of({"", "1", {}, {}}, path_), "");
  EXPECT_NE(refusal_of({"\xff", "1", {}, {}}, path_), "");
  EXPECT_FALSE(fs::exists(path_));
}

TEST(LaunchOrderPath, FollowsTheFolderThenTheCacheVariableThenTheHome) {
  const ScopedVariable home("HOME", "/home/someone");
  {
    const ScopedVariable cache("XDG_CACHE_HOME", "/var/cache/someone");
    EXPECT_EQ(launch_order_path("/given"), "/given/launch_order.json");
    EXPECT_EQ(launch_order_path(), "/var/cache/someone/tileweave/launch_order.json");
  }
  for (const char* ignored : {static_cast<const char*>(nullptr), "", "relative"}) {
    const ScopedVariable cache("XDG_CACHE_HOME", ignored);
    EXPECT_EQ(launch_order_path(), "/home/someone/.cache/tileweave/launch_order.json");
    const ScopedVariable no_home("HOME", nullptr);
    EXPECT_EQ(launch_order_path(), "");
  }
}

}  // namespace
}  // namespace tileweave

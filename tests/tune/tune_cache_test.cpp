#include "tileweave/tune/tune_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/tune/tune_folder.h"

namespace tileweave {
namespace {

namespace fs = std::filesystem;

const TuneKey kKey = {"gemm", {{"shapes", "1x2x3"}, {"gpu", "GPU A"}, {"driver", "1"}}};

TuneKey with(const std::string& fact, const std::string& value) {
  TuneKey key = kKey;
  key.facts[fact] = value;
  return key;
}

TEST(TuneCache, GivesBackWhatWasStoredForThisKeyAlone) {
  TuneFolder folder;
  TuneCache cache = folder.cache();
  EXPECT_FALSE(cache.find(kKey));
  const std::string path = cache.store(kKey, R"({"stages": 4})");
  EXPECT_TRUE(fs::is_regular_file(path));
  EXPECT_EQ(cache.find(kKey), R"({"stages":4})");
  EXPECT_EQ(folder.cache().find(kKey), R"({"stages":4})") << "another process";
  for (const TuneKey& other : {with("shapes", "1x2x4"), with("gpu", "GPU B"), with("driver", "2"),
                               with("sms", "1"), TuneKey{"attention", kKey.facts}}) {
    EXPECT_FALSE(cache.find(other)) << other.what;
  }
  cache.store(kKey, R"({"stages": 5})");
  EXPECT_EQ(cache.find(kKey), R"({"stages":5})");
  EXPECT_TRUE(folder.notes.empty()) << folder.notes[0];
}

TEST(TuneCache, WithoutAFolderEveryQuestionIsAMiss) {
  TuneCache cache;
  EXPECT_EQ(cache.store(kKey, "1"), "");
  EXPECT_FALSE(cache.find(kKey));
}

TEST(TuneCache, ABadEntryIsAMissAndSaidOnce) {
  TuneFolder folder;
  TuneCache maker = folder.cache();
  const std::string path = maker.store(kKey, R"({"stages": 4})");
  const std::string good = TuneFolder::read(path);
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  const std::vector<std::string> bad = {"",
                                        "no JSON",
                                        "[]",
                                        "{}",
                                        "null",
                                        good.substr(0, good.size() / 2),
                                        std::string("\0\xff\xfe", 3),
                                        std::string(100'000, '['),
                                        edited("\"tileweave tuned\"", "\"another format\""),
                                        edited("\"format_version\": 1", "\"format_version\": 2"),
                                        edited("\"value\"", "\"worth\""),
                                        edited("GPU A", "GPU B"),
                                        edited("\"what\": \"gemm\"", "\"what\": 7"),
                                        std::string(2 << 20, ' ') + good};
  for (const std::string& text : bad) {
    TuneFolder::write(path, text);
    folder.notes.clear();
    TuneCache cache = folder.cache();
    EXPECT_FALSE(cache.find(kKey)) << text.substr(0, 200);
    EXPECT_FALSE(cache.find(kKey));
    ASSERT_EQ(folder.notes.size(), 1U) << text.substr(0, 200);
    EXPECT_NE(folder.notes[0].find(path), std::string::npos) << folder.notes[0];
    cache.store(kKey, "1");  // and is replaced
    EXPECT_EQ(cache.find(kKey), "1");
  }
}

TEST(TuneCache, APipeOrAFolderInItsPlaceIsAMissToo) {
  TuneFolder folder;
  TuneCache cache = folder.cache();
  const std::string path = cache.path_of(kKey);
  fs::create_directories(fs::path(path).parent_path());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(cache.find(kKey));
  EXPECT_EQ(folder.notes.size(), 1U);
  fs::remove(path);
  fs::create_directories(path);
  EXPECT_FALSE(folder.cache().find(kKey));
  EXPECT_EQ(folder.notes.size(), 2U);
}

TEST(TuneCache, ThrowsNamingTheFileWhereItCannotStore) {
  TuneCache cache("/dev/null/x");
  try {
    cache.store(kKey, "1");
    FAIL() << "it was stored";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/dev/null/x"), std::string::npos) << error.what();
  }
  EXPECT_THROW(TuneCache("/tmp").store(kKey, "{half"), Error);
}

TEST(TuneCache, TakesNamesThatAreNotUtf8) {
  TuneFolder folder;
  TuneCache cache = folder.cache();
  const TuneKey key = with("gpu", "GPU \xff");
  cache.store(key, "1");
  EXPECT_EQ(cache.find(key), "1");
}

TEST(TuneCache, ManyWritersAtOnceLeaveOneWholeEntry) {
  TuneFolder folder;
  TuneCache cache = folder.cache();
  constexpr int kWriters = 6;
  constexpr int kTimes = 60;
  std::vector<pid_t> children;
  for (int w = 0; w < kWriters; ++w) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int status = 0;
      try {
        TuneCache own(folder.path());
        const std::string text =
            "{\"writer\": \"" + std::string(1000, static_cast<char>('a' + w)) + "\"}";
        for (int i = 0; i < kTimes; ++i) {
          own.store(kKey, text);
          if (!own.find(kKey)) status = 1;  // somebody's, whole
        }
      } catch (...) {
        status = 2;
      }
      ::_exit(status);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  const auto value = cache.find(kKey);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->size(), std::string(R"({"writer":""})").size() + 1000);
  const auto files = std::distance(fs::directory_iterator(folder.path() + "/tuned"), {});
  EXPECT_EQ(files, 1) << "no temporary files are left";
  EXPECT_TRUE(folder.notes.empty());
}

}  // namespace
}  // namespace tileweave

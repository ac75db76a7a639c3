#include "tileweave/models/checkpoint/model_directory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/models/checkpoint/temporary_folder.h"

namespace tileweave {
namespace {

namespace fs = std::filesystem;
using testing::expect_part;
using testing::refusal_of;
using testing::TemporaryFolder;

// The layout that huggingface_hub leaves: links in the snapshot, bytes in blobs.
void fill_cache(const TemporaryFolder& folder, const std::string& cache) {
  const std::string model = cache + "/models--org--Tiny-1.5_B";
  folder.write(model + "/refs/main", "0123abc\n");
  folder.write(model + "/blobs/ffff", "{}");
  fs::create_directories(folder.path(model + "/snapshots/0123abc"));
  fs::create_symlink("../../blobs/ffff", folder.path(model + "/snapshots/0123abc/config.json"));
}

TEST(ModelDirectory, IsTakenAsItIs) {
  const TemporaryFolder folder;
  EXPECT_EQ(resolve_model(folder.path(), {}), folder.path());
  EXPECT_EQ(resolve_model(folder.path()), folder.path());
}

TEST(ModelDirectory, IsFoundInTheCacheOfHuggingFace) {
  const TemporaryFolder folder;
  for (const char* cache : {"a", "home/hub", "xdg/huggingface/hub", "me/.cache/huggingface/hub"}) {
    fill_cache(folder, cache);
  }
  const auto found = [&](const HubEnvironment& environment) {
    return resolve_model("org/Tiny-1.5_B", environment);
  };
  const std::string rest = "/models--org--Tiny-1.5_B/snapshots/0123abc";
  HubEnvironment environment{.home = folder.path("me")};
  EXPECT_EQ(found(environment), folder.path("me/.cache/huggingface/hub") + rest);
  environment.xdg_cache_home = folder.path("xdg");
  EXPECT_EQ(found(environment), folder.path("xdg/huggingface/hub") + rest);
  environment.hf_home = folder.path("home");
  EXPECT_EQ(found(environment), folder.path("home/hub") + rest);
  environment.hf_hub_cache = folder.path("a");
  EXPECT_EQ(found(environment), folder.path("a") + rest);
  environment = {.hf_hub_cache = "~/.cache/huggingface/hub", .home = folder.path("me")};
  EXPECT_EQ(found(environment), folder.path("me/.cache/huggingface/hub") + rest);
  EXPECT_TRUE(find_model_files(found(environment)).config);
}

TEST(ModelDirectory, NamesWhatWasTried) {
  const TemporaryFolder folder;
  fill_cache(folder, "cache");
  const HubEnvironment environment{.hf_hub_cache = folder.path("cache")};
  const auto refusal = [&](const std::string& model) {
    return refusal_of([&] { resolve_model(model, environment); });
  };
  expect_part(refusal("org/other"), folder.path("cache/models--org--other"));
  expect_part(refusal("/no/such/model"), "org/name");
  expect_part(refusal("../x"), "org/name");
  expect_part(refusal("org/.."), "org/name");
  expect_part(refusal("a/b/c"), "org/name");
  expect_part(refusal(""), "org/name");
  expect_part(refusal(std::string("a\0/b", 4)), "org/name");
  expect_part(refusal("model\n"), R"("model\x0a")");
  expect_part(refusal(folder.write("file", "x")), "got a file");
  expect_part(refusal_of([] { resolve_model("org/name", {}); }), "HF_HUB_CACHE, HF_HOME or HOME");

  folder.write("cache/models--a--escapes/refs/main", "../../outside");
  expect_part(refusal("a/escapes"), "\"../../outside\"");
  folder.write("cache/models--a--empty/refs/main", "");
  expect_part(refusal("a/empty"), "the name of a snapshot");
  folder.write("cache/models--a--broken/refs/main", "0123");
  expect_part(refusal("a/broken"), "snapshots/0123");
  fs::create_directories(folder.path("cache/models--a--bare"));
  expect_part(refusal("a/bare"), "refs/main");
}

TEST(ModelFiles, AreThoseThatExist) {
  const TemporaryFolder folder;
  EXPECT_FALSE(find_model_files(folder.path()).config);
  folder.write("config.json", "{}");
  folder.write("tokenizer.json", "{}");
  folder.write("chat_template.jinja", "");
  fs::create_symlink("nowhere", folder.path("generation_config.json"));
  const ModelFiles files = find_model_files(folder.path());
  EXPECT_EQ(files.config, folder.path("config.json"));
  EXPECT_EQ(files.tokenizer, folder.path("tokenizer.json"));
  EXPECT_EQ(files.chat_template, folder.path("chat_template.jinja"));
  EXPECT_EQ(files.tokenizer_config, std::nullopt);
  EXPECT_TRUE(files.generation_config);  // so that opening it names the broken link
  expect_part(refusal_of([&] { find_model_files(folder.path("gone")); }), folder.path("gone"));
}

}  // namespace
}  // namespace tileweave

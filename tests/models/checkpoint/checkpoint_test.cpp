#include "tileweave/models/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/models/checkpoint/temporary_folder.h"

namespace tileweave {
namespace {

using testing::expect_part;
using testing::TemporaryFolder;

constexpr const char* kIndex = "model.safetensors.index.json";
const std::string kFirst = "model-00001-of-00002.safetensors";
const std::string kSecond = "model-00002-of-00002.safetensors";

// A file with one tensor of two floats for each name, all with the value `value`.
void write_file(const std::string& path, const std::vector<std::string>& names, float value) {
  const std::vector<float> values = {value, value};
  std::vector<TensorToWrite> tensors;
  for (const std::string& name : names) {
    tensors.push_back({name, DType::kF32, {2}, std::as_bytes(std::span(values))});
  }
  write_safetensors(path, tensors);
}

void write_index(const TemporaryFolder& folder, const std::string& weight_map) {
  folder.write(kIndex, R"({"metadata": {"total_size": 24}, "weight_map": )" + weight_map + "}");
}

// Tensors a and b in the first shard, c in the second.
void write_shards(const TemporaryFolder& folder) {
  write_file(folder.path(kFirst), {"a", "b"}, 1);
  write_file(folder.path(kSecond), {"c"}, 2);
  write_index(folder,
              R"({"a": ")" + kFirst + R"(", "b": ")" + kFirst + R"(", "c": ")" + kSecond + "\"}");
}

float first_value(const StoredTensor& tensor) {
  return *reinterpret_cast<const float*>(tensor.bytes.data());
}

std::string refusal_of(const TemporaryFolder& folder) {
  const std::string sentence = testing::refusal_of([&] { Checkpoint::open(folder.path()); });
  testing::expect_sentence(sentence);
  expect_part(sentence, folder.path());
  return sentence;
}

TEST(Checkpoint, IsOneFile) {
  for (const char* name : {"model.safetensors", "weights.safetensors"}) {
    const TemporaryFolder folder;
    write_file(folder.path(name), {"b", "a"}, 3);
    folder.write("config.json", "{}");
    folder.write(".hidden.safetensors", "");
    const Checkpoint checkpoint = Checkpoint::open(folder.path());
    EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(checkpoint.total_bytes(), 16u);
    EXPECT_EQ(first_value(*checkpoint.find("b")), 3.0F);
    EXPECT_EQ(checkpoint.find("c"), nullptr);
  }
}

TEST(Checkpoint, IsManyShardsThatAnIndexNames) {
  const TemporaryFolder folder;
  write_shards(folder);
  Checkpoint checkpoint = Checkpoint::open(folder.path());
  const Checkpoint moved = std::move(checkpoint);
  EXPECT_EQ(moved.names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(moved.total_bytes(), 24u);
  EXPECT_EQ(first_value(*moved.find("a")), 1.0F);
  EXPECT_EQ(first_value(*moved.find("c")), 2.0F);
  EXPECT_EQ(moved.find("c")->file, folder.path(kSecond));
  EXPECT_EQ(moved.files().size(), 2u);
}

TEST(Checkpoint, PrefersTheSingleFileToAnIndexWithoutShards) {
  const TemporaryFolder folder;
  write_shards(folder);
  std::filesystem::remove(folder.path(kFirst));
  std::filesystem::remove(folder.path(kSecond));
  write_file(folder.path("model.safetensors"), {"x"}, 1);
  write_file(folder.path("logits.safetensors"), {"y"}, 1);
  EXPECT_EQ(Checkpoint::open(folder.path()).names(), (std::vector<std::string>{"x"}));
}

TEST(Checkpoint, NamesWhatIsMissing) {
  const TemporaryFolder folder;
  expect_part(refusal_of(folder), "no *.safetensors file");
  expect_part(testing::refusal_of([&] { Checkpoint::open(folder.path("gone")); }), "gone");
  write_shards(folder);
  std::filesystem::remove(folder.path(kSecond));
  expect_part(refusal_of(folder),
              "the shard \"" + kSecond + "\" with tensor \"c\", got no such file");
  std::filesystem::remove(folder.path(kIndex));
  expect_part(refusal_of(folder), kIndex);  // one shard alone is no model
  write_file(folder.path(kSecond), {"c"}, 2);
  expect_part(refusal_of(folder), kIndex);
}

TEST(Checkpoint, NamesAStrayShard) {
  const TemporaryFolder folder;
  write_shards(folder);
  for (const char* name :
       {"model-00003-of-00003.safetensors", "part-1-of-2.safetensors", "model-copy.safetensors"}) {
    write_file(folder.path(name), {"d"}, 1);
    expect_part(refusal_of(folder), std::string("the stray shard \"") + name);
    std::filesystem::remove(folder.path(name));
  }
  write_file(folder.path("logits.safetensors"), {"d"}, 1);
  EXPECT_EQ(Checkpoint::open(folder.path()).find("d"), nullptr);
  write_file(folder.path("model.safetensors"), {"d"}, 1);
  expect_part(refusal_of(folder), "model.safetensors and the stray shard \"" + kFirst);
}

TEST(Checkpoint, NamesATensorThatIsNotWhereTheIndexSays) {
  const TemporaryFolder folder;
  write_shards(folder);
  write_file(folder.path(kSecond), {"d"}, 2);
  expect_part(refusal_of(folder), "every tensor of \"" + kSecond + "\" in weight_map, got \"d\"");
  write_file(folder.path(kSecond), {"c", "b"}, 2);
  expect_part(refusal_of(folder), "tensor \"b\" in \"" + kFirst + "\", got one in \"" + kSecond);
  write_file(folder.path(kSecond), {}, 2);
  expect_part(refusal_of(folder), "tensor \"c\" in \"" + kSecond + "\", got no such tensor");
}

TEST(Checkpoint, NamesWhatIsWrongWithTheIndex) {
  const TemporaryFolder folder;
  write_shards(folder);
  const std::string index = folder.path(kIndex);
  const auto refusal = [&](const std::string& weight_map) {
    write_index(folder, weight_map);
    const std::string sentence = refusal_of(folder);
    expect_part(sentence, index);
    return sentence;
  };
  expect_part(refusal("[]"), "weight_map to be an object");
  expect_part(refusal("null"), "the key \"weight_map\"");
  expect_part(refusal("{}"), "at least one tensor");
  expect_part(refusal(R"({"a": 1})"), "weight_map.a to be a string");
  expect_part(refusal(R"({"a": "x.bin"})"), "the name of a *.safetensors file");
  expect_part(refusal(R"({"a": ".safetensors"})"), "the name of a *.safetensors file");
  expect_part(refusal(R"({"a": "../x.safetensors"})"), "in the same directory");
  expect_part(refusal(R"({"a": "/etc/x.safetensors"})"), "in the same directory");
  expect_part(refusal(R"({"a": "x\\y.safetensors"})"), "in the same directory");
  expect_part(refusal(R"({"a": "x\u0000.safetensors"})"), "in the same directory");
  expect_part(refusal(R"({"a": "x.safetensors", "a": "y.safetensors"})"), "the key \"a\" twice");
  folder.write(kIndex, "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  expect_part(refusal_of(folder), "a Git LFS pointer");
}

TEST(Checkpoint, NamesTheDamagedShard) {
  const TemporaryFolder folder;
  write_shards(folder);
  std::filesystem::resize_file(folder.path(kSecond), 40);
  expect_part(refusal_of(folder), folder.path(kSecond) + ": a whole file");
}

}  // namespace
}  // namespace tileweave

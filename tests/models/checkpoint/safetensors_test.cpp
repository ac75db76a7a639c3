#include "tileweave/models/checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>

#include "tests/models/checkpoint/temporary_folder.h"

namespace tileweave {
namespace {

using testing::expect_part;
using testing::expect_sentence;
using testing::refusal_of;
using testing::safetensors_bytes;
using testing::TemporaryFolder;

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

std::string text_of(const std::string& path) {
  return std::string(FileMap::open(path).text());
}

const std::string kOfficial = TW_SOURCE_DIR "/tests/models/checkpoint/data/official.safetensors";

TEST(Safetensors, ReadsAFileOfTheReferenceImplementation) {
  const Safetensors file = Safetensors::open(kOfficial);
  ASSERT_EQ(file.tensors().size(), 7u);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  const StoredTensor* words = file.find("words");
  ASSERT_NE(words, nullptr);
  EXPECT_EQ(dtype_of(*words), DType::kI32);
  EXPECT_EQ(words->shape, (std::vector<std::int64_t>{2, 3}));
  const std::vector<std::int32_t> counted = {0, 1, 2, 3, 4, 5};
  EXPECT_TRUE(std::ranges::equal(words->bytes, bytes_of(counted)));
  EXPECT_EQ(words->file, kOfficial);
  EXPECT_TRUE(file.find("scalar")->shape.empty());
  EXPECT_EQ(file.find("scalar")->bytes.size(), 4u);
  EXPECT_EQ(file.find("empty")->bytes.size(), 0u);
  EXPECT_NE(file.find("é\"\\"), nullptr);
  EXPECT_EQ(file.find("gone"), nullptr);
}

TEST(Safetensors, AreWrittenAsTheReferenceImplementationDoes) {
  const Safetensors official = Safetensors::open(kOfficial);
  std::vector<TensorToWrite> tensors;
  for (const StoredTensor& tensor : official.tensors()) {
    tensors.push_back({tensor.name, dtype_of(tensor), tensor.shape, tensor.bytes});
  }
  std::reverse(tensors.begin(), tensors.end());
  const TemporaryFolder folder;
  write_safetensors(folder.path("own"), tensors, official.metadata());
  EXPECT_EQ(text_of(folder.path("own")), text_of(kOfficial));
}

TEST(Safetensors, WrittenPieceByPieceAreTheSameFile) {
  std::vector<float> values(15);
  std::iota(values.begin(), values.end(), 1.0F);
  const auto bytes = std::as_bytes(std::span(values));
  const TemporaryFolder folder;
  write_safetensors(folder.path("whole"),
                    std::vector<TensorToWrite>{{"x", DType::kF32, {5, 3}, bytes}});
  {
    SafetensorsStream file(folder.path("pieces"), "x", DType::kF32, {5, 3});
    file.write(bytes.first(24));
    file.write(bytes.subspan(24));
    file.commit();
  }
  EXPECT_EQ(text_of(folder.path("pieces")), text_of(folder.path("whole")));
  {
    SafetensorsStream file(folder.path("short"), "x", DType::kF32, {5, 3});
    file.write(bytes.first(24));
    EXPECT_THROW(file.commit(), Error);
    EXPECT_THROW(file.write(bytes), Error) << "more than the shape has";
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path("short")));
}

TEST(Safetensors, MayBeMovedAndHoldNothing) {
  const TemporaryFolder folder;
  write_safetensors(folder.path("empty"), {});
  Safetensors file = Safetensors::open(folder.path("empty"));
  EXPECT_TRUE(file.tensors().empty());
  file = Safetensors::open(kOfficial);
  const Safetensors moved = std::move(file);
  EXPECT_EQ(moved.find("scalar")->bytes.size(), 4u);
}

struct OwnedTensor {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

std::vector<OwnedTensor> random_tensors(std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::vector<OwnedTensor> tensors(below(9));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    OwnedTensor& tensor = tensors[i];
    tensor.name = std::string(below(4), 'x') + std::to_string(i) + (below(2) == 0 ? "é" : ".w");
    tensor.dtype = static_cast<DType>(below(6));
    std::size_t size = size_of(tensor.dtype);
    for (std::size_t axis = below(4); axis > 0; --axis) {
      tensor.shape.push_back(static_cast<std::int64_t>(below(8)));
      size *= static_cast<std::size_t>(tensor.shape.back());
    }
    for (; size > 0; --size) tensor.bytes.push_back(static_cast<std::byte>(below(256)));
  }
  return tensors;
}

TEST(Safetensors, GiveBackWhateverWasWritten) {
  const TemporaryFolder folder;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::vector<OwnedTensor> tensors = random_tensors(random);
    std::vector<TensorToWrite> to_write;
    for (const OwnedTensor& each : tensors) {
      to_write.push_back({each.name, each.dtype, each.shape, each.bytes});
    }
    write_safetensors(folder.path("f"), to_write);
    const Safetensors file = Safetensors::open(folder.path("f"));
    ASSERT_EQ(file.tensors().size(), tensors.size());
    for (const OwnedTensor& each : tensors) {
      const StoredTensor* stored = file.find(each.name);
      ASSERT_NE(stored, nullptr);
      EXPECT_EQ(dtype_of(*stored), each.dtype);
      EXPECT_EQ(stored->shape, each.shape);
      EXPECT_TRUE(std::ranges::equal(stored->bytes, each.bytes));
      if (!each.bytes.empty()) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(stored->bytes.data()) % size_of(each.dtype), 0u);
      }
    }
  }
}

TEST(Safetensors, CutOffAnywhereAreRefusedWithASentence) {
  const std::string whole = text_of(kOfficial);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    const std::string cut = whole.substr(0, size);
    const std::string sentence =
        refusal_of([&] { Safetensors::view(std::as_bytes(std::span(cut)), "cut"); });
    expect_sentence(sentence);
    expect_part(sentence, "cut");
  }
}

// Whatever survives a damaged byte must still lie within the file and be of the claimed size.
TEST(Safetensors, WithDamagedBytesAreRefusedOrStillAgreeWithThemselves) {
  const std::string whole = text_of(kOfficial);
  int num_refused = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string damaged = whole;
    for (unsigned flips = 1 + random() % 3; flips > 0; --flips) {
      char& byte = damaged[random() % damaged.size()];
      byte = static_cast<char>(random() % 2 == 0 ? byte ^ (1 << (random() % 8))
                                                 : static_cast<int>(random()));
    }
    try {
      const Safetensors file = Safetensors::view(std::as_bytes(std::span(damaged)), "f");
      std::size_t total = 0;
      int sum = 0;
      for (const StoredTensor& tensor : file.tensors()) {
        total += tensor.bytes.size();
        for (const std::byte byte : tensor.bytes) sum += static_cast<int>(byte);
      }
      EXPECT_LT(total, damaged.size());
      EXPECT_GE(sum, 0);
    } catch (const Error& error) {
      expect_sentence(error.what());
      ++num_refused;
    }
  }
  EXPECT_GT(num_refused, 1000);
}

TEST(Safetensors, RefuseADtypeOnlyWhenItIsUsed) {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "f", safetensors_bytes(R"({"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]},)"
                             R"("b":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[2,5]},)"
                             R"("c":{"dtype":"I64","shape":[1],"data_offsets":[5,13]}})",
                             13));
  const Safetensors file = Safetensors::open(path);
  EXPECT_EQ(file.find("a")->bytes.size(), 2u);
  const std::string sentence = refusal_of([&] { dtype_of(*file.find("b")); });
  EXPECT_EQ(sentence,
            "read " + path + ": tensor \"b\" of dtype F32, BF16, F16, I32, U32 or U8, got F8_E4M3");
}

TEST(Safetensors, RefuseToWriteWhatCouldNotBeRead) {
  const TemporaryFolder folder;
  const std::vector<float> three = {1, 2, 3};
  const auto refusal = [&](std::vector<TensorToWrite> tensors,
                           std::map<std::string, std::string> metadata = {}) {
    return refusal_of([&] { write_safetensors(folder.path("f"), tensors, metadata); });
  };
  const TensorToWrite good = {"a", DType::kF32, {3}, bytes_of(three)};
  expect_part(refusal({good, good}), "two \"a\"");
  expect_part(refusal({{"a", DType::kF32, {4}, bytes_of(three)}}),
              "shape (4) and dtype F32, got 12");
  expect_part(refusal({{"a", DType::kF16, {3}, bytes_of(three)}}), "dtype F16, got 12 bytes");
  expect_part(refusal({{"a", DType::kF32, {-3}, bytes_of(three)}}), "shape (-3)");
  expect_part(refusal({{"a", DType::kF32, {1LL << 62, 1LL << 62}, {}}}), "got 0 bytes");
  expect_part(refusal({{"\xff", DType::kF32, {3}, bytes_of(three)}}), "UTF-8 name");
  expect_part(refusal({{"__metadata__", DType::kF32, {3}, bytes_of(three)}}), "__metadata__");
  expect_part(refusal({good}, {{"k", "\xff"}}), "metadata in UTF-8");
  EXPECT_FALSE(std::filesystem::exists(folder.path("f")));
  EXPECT_EQ(refusal({good}), "");
  expect_part(refusal_of([&] { write_safetensors(folder.path("no/f"), {}); }), folder.path("no/f"));
}

TEST(Safetensors, AreNotHalfWrittenWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  write_safetensors(folder.path("f"), {});
  const std::string old = text_of(folder.path("f"));
  const std::vector<float> large(100'000, 1.0F);
  const std::vector<TensorToWrite> tensors = {{"a", DType::kF32, {100'000}, bytes_of(large)}};
  // A limit on file sizes stands in for a full disk.
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit old_limit {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  struct rlimit small = old_limit;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string sentence = refusal_of([&] { write_safetensors(folder.path("f"), tensors); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  expect_part(sentence, folder.path("f"));
  EXPECT_EQ(text_of(folder.path("f")), old);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace tileweave

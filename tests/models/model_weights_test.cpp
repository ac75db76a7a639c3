#include "tileweave/models/model_weights.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/models/checkpoint/expected_tensors.h"
#include "tileweave/runtime/cpu/cpu_device.h"

namespace tileweave {
namespace {

ModelConfig tiny_config() {
  ModelConfig config;
  config.vocab_size = 3;
  config.hidden_size = 6;
  config.intermediate_size = 2;
  config.num_layers = 1;
  config.num_heads = 1;
  config.num_kv_heads = 1;
  config.head_dim = 2;
  config.max_position_embeddings = 4;
  config.tie_word_embeddings = true;
  return config;
}

/// A model of zeros, but for one element of its final norm.
class ZeroModel {
 public:
  explicit ZeroModel(DType dtype) : dtype_(dtype) {
    for (const ExpectedTensor& expected : expected_tensors(config_)) {
      std::size_t size = size_of(dtype);
      for (const std::int64_t extent : expected.shape) size *= static_cast<std::size_t>(extent);
      values_[expected.name].assign(size, std::byte{0});
    }
    std::filesystem::create_directories(folder_);
  }
  ~ZeroModel() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ZeroModel(const ZeroModel&) = delete;
  ZeroModel& operator=(const ZeroModel&) = delete;

  std::int64_t elements() const { return config_.hidden_size; }

  std::string sentence_with(std::int64_t at, std::uint32_t bits) {
    std::vector<std::byte>& norm = values_.at("model.norm.weight");
    std::byte* element = norm.data() + static_cast<std::size_t>(at) * size_of(dtype_);
    std::memcpy(element, &bits, size_of(dtype_));  // little-endian
    std::vector<TensorToWrite> tensors;
    for (const ExpectedTensor& expected : expected_tensors(config_)) {
      tensors.push_back({.name = expected.name,
                         .dtype = dtype_,
                         .shape = expected.shape,
                         .bytes = values_.at(expected.name)});
    }
    write_safetensors((folder_ / "model.safetensors").string(), tensors);
    std::memset(element, 0, size_of(dtype_));
    try {
      load_weights(*device_, Checkpoint::open(folder_.string()), config_);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

 private:
  DType dtype_;
  ModelConfig config_ = tiny_config();
  std::map<std::string, std::vector<std::byte>> values_;
  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) /
                                  ("tileweave-zero-model-" + std::to_string(::getpid()));
  std::unique_ptr<Device> device_ = open_cpu_device();
};

TEST(ModelWeights, RefusesNaNAndInfinityOfEveryElementType) {
  struct Case {
    DType dtype;
    std::uint32_t infinity, nan, largest;
    std::uint32_t sign;
  };
  for (const Case& c : {Case{DType::kF32, 0x7f800000, 0x7f800001, 0x7f7fffff, 0x80000000},
                        Case{DType::kBF16, 0x7f80, 0x7f81, 0x7f7f, 0x8000},
                        Case{DType::kF16, 0x7c00, 0x7c01, 0x7bff, 0x8000}}) {
    ZeroModel model(c.dtype);
    for (std::int64_t at = 0; at < model.elements(); ++at) {
      for (const std::uint32_t sign : {0U, c.sign}) {
        SCOPED_TRACE(testing::Message() << name_of(c.dtype) << " at " << at << " sign " << sign);
        EXPECT_EQ(model.sentence_with(at, c.largest | sign), "no error");
        for (const std::uint32_t bits : {c.infinity, c.nan}) {
          const std::string sentence = model.sentence_with(at, bits | sign);
          EXPECT_NE(sentence.find("finite numbers in tensor `model.norm.weight`"),
                    std::string::npos)
              << sentence;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tileweave

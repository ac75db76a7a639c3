#include "tileweave/models/weight_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "tileweave/models/presets.h"
#include "tileweave/models/random_fill.h"

namespace tileweave {
namespace {

std::vector<std::byte> bytes_at(Device& device, const Weight& weight) {
  std::vector<std::byte> bytes(bytes_of(weight));
  device.download(bytes.data(), weight.address, bytes.size());
  return bytes;
}

TEST(WeightStore, PacksAMatrixLargerThanItsStagingBufferAsAWhole) {
  const auto device = open_cpu_device();
  const std::int64_t n = 2 * 35'003, k = 500;  // 70 MB; ragged strips and fragments
  std::vector<BFloat16> w(static_cast<std::size_t>(n * k));
  fill_random_on(*device, w.data(), {.seed = 3, .count = n * k});
  for (const StripOrder order : {StripOrder::kRows, StripOrder::kPaired}) {
    WeightStore store(*device, {.matrices = MatrixLayout::kPacked});
    const Weight weight =
        store.packed({n, k}, order, [&](std::int64_t first, std::int64_t count, std::byte* to) {
          std::memcpy(to, w.data() + first * k, static_cast<std::size_t>(count * k) * 2);
        });
    const PackedLayout layout{.n = n, .k = k, .order = order};
    std::vector<BFloat16> whole(static_cast<std::size_t>(layout.bytes()) / 2);
    pack_weights(w.data(), layout, whole.data());
    const std::vector<std::byte> found = bytes_at(*device, weight);
    ASSERT_EQ(found.size(), whole.size() * 2);
    EXPECT_EQ(std::memcmp(found.data(), whole.data(), found.size()), 0)
        << (order == StripOrder::kPaired ? "paired" : "rows");
    EXPECT_EQ(store.bytes(), found.size()) << "what is staged does not count";
  }
}

TEST(WeightStore, KeepsRowMajorCopiesForWideProductsOfTheVendor) {
  const auto device = open_cpu_device();
  const std::int64_t n = 2 * 37, k = 50;
  std::vector<BFloat16> w(static_cast<std::size_t>(n * k));
  fill_random_on(*device, w.data(), {.seed = 3, .count = n * k});
  const std::size_t size = w.size() * sizeof(BFloat16);
  const PlaceRows place = [&](std::int64_t first, std::int64_t count, std::byte* to) {
    std::memcpy(to, w.data() + first * k, static_cast<std::size_t>(count * k) * 2);
  };
  for (const StripOrder order : {StripOrder::kRows, StripOrder::kPaired}) {
    WeightStore without(*device, {.matrices = MatrixLayout::kPacked});
    WeightStore store(*device,
                      {.matrices = MatrixLayout::kPacked, .wide_products = WideProducts::kVendor});
    const Weight plain = without.packed({n, k}, order, place);
    const Weight weight = store.packed({n, k}, order, place);
    EXPECT_EQ(plain.row_major, nullptr);
    ASSERT_NE(weight.row_major, nullptr);
    EXPECT_EQ(std::memcmp(weight.row_major, w.data(), size), 0);
    EXPECT_EQ(bytes_at(*device, weight), bytes_at(*device, plain));
    EXPECT_EQ(store.copy_bytes(), size);
    EXPECT_EQ(store.bytes(), without.bytes() + size);
    // A copy that exists already is taken as it is.
    const Weight shared = store.packed({n, k}, order, place, weight.row_major);
    EXPECT_EQ(shared.row_major, weight.row_major);
    EXPECT_EQ(bytes_at(*device, shared), bytes_at(*device, plain));
    EXPECT_EQ(store.copy_bytes(), size);
  }
}

TEST(Presets, WithCopiesReadNoMoreInAStepAndShareATiedHeadWithTheEmbedding) {
  for (const char* name : {"llama-3.2-1b", "qwen3-8b"}) {  // the first one's head is tied
    ModelConfig config = *preset_config(name);
    config.num_layers = 1;
    config.vocab_size = 200;
    config.attention_bias = true;
    const auto device = open_cpu_device();
    const WeightForm form{.matrices = MatrixLayout::kPacked, .gate_up = StripOrder::kPaired};
    WeightForm with = form;
    with.wide_products = WideProducts::kVendor;
    const ModelWeights weights = random_weights(*device, config, 1, with);
    const ModelWeights plain = random_weights(*device, config, 1, form);
    EXPECT_EQ(weights.bytes_per_step(), plain.bytes_per_step());
    EXPECT_EQ(weights.bytes, plain.bytes + weights.copy_bytes);
    EXPECT_EQ(weights.head.row_major == weights.embedding.address, config.tie_word_embeddings);
    EXPECT_EQ(bytes_at(*device, weights.head), bytes_at(*device, plain.head));
    EXPECT_EQ(bytes_at(*device, weights.layers[0].gate_up),
              bytes_at(*device, plain.layers[0].gate_up));
    const ModelWeights described = described_weights(config, DType::kBF16, with);
    EXPECT_EQ(described.bytes, weights.bytes);
    EXPECT_EQ(described.copy_bytes, weights.copy_bytes);
    EXPECT_EQ(described.bytes_per_step(), weights.bytes_per_step());
  }
}

TEST(Presets, HaveTheSizesOfTheirModels) {
  const std::vector<std::pair<const char*, double>> bytes_per_step = {{"llama-3.2-1b", 2.472e9},
                                                                      {"qwen3-0.6b", 1.192e9},
                                                                      {"qwen3-1.7b", 3.441e9},
                                                                      {"qwen3-8b", 15.137e9},
                                                                      {"llama-3.1-70b", 139.006e9}};
  for (const auto& [name, bytes] : bytes_per_step) {
    const ModelConfig config = *preset_config(name);
    for (const MatrixLayout layout : {MatrixLayout::kRowMajor, MatrixLayout::kPacked}) {
      const ModelWeights weights = described_weights(config, DType::kBF16, {.matrices = layout});
      EXPECT_NEAR(static_cast<double>(weights.bytes_per_step()) / bytes, 1, 1e-3) << name;
    }
  }
  EXPECT_FALSE(preset_config("llama-3.2-3b"));
}

TEST(Presets, WeightsDependOnTheSeedAloneAndKeepTheirVariance) {
  ModelConfig config = *preset_config("qwen3-0.6b");
  config.num_layers = 1;
  config.vocab_size = 200;
  const auto device = open_cpu_device();
  const ModelWeights weights = random_weights(*device, config, 1, Granularity::kOps);
  const ModelWeights again = random_weights(*device, config, 1, Granularity::kStages);
  const ModelWeights other = random_weights(*device, config, 2, Granularity::kOps);
  const Weight& o = weights.layers[0].o;
  EXPECT_EQ(bytes_at(*device, o), bytes_at(*device, again.layers[0].o));
  EXPECT_NE(bytes_at(*device, o), bytes_at(*device, other.layers[0].o));
  const auto* values = static_cast<const BFloat16*>(o.address);
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < o.shape.volume(); ++i) {
    const double value = to_float(values[i]);
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(o.shape.volume());
  const auto columns = static_cast<double>(o.shape[1]);
  EXPECT_NEAR(squares / count * columns, 1, 0.02);
  EXPECT_NEAR(sum / count * std::sqrt(columns), 0, 0.01);
  const auto* norm = static_cast<const BFloat16*>(weights.final_norm.address);
  for (std::int64_t i = 0; i < weights.final_norm.shape[0]; ++i) {
    EXPECT_NEAR(to_float(norm[i]), 1, 0.126);
  }
}

}  // namespace
}  // namespace tileweave

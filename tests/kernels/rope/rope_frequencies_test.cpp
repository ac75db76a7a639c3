// Frequencies against transformers, and the numbers that are refused.
#include "tileweave/kernels/rope/rope_frequencies.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

#include "tests/kernels/rope/hugging_face_rope.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

TEST(RopeFrequencies, AreThoseOfTransformersToOneUnitInTheLastPlace) {
  for (const HuggingFaceRope& golden : hugging_face_rope()) {
    SCOPED_TRACE(golden.name);
    const std::vector<float> ours = rope_inv_freq(golden.options);
    ASSERT_EQ(ours.size(), golden.inv_freq.size());
    int equal = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      // Positive floats are ordered like their bits.
      const auto bits = static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(ours[i]));
      const std::int64_t distance = std::abs(bits - static_cast<std::int64_t>(golden.inv_freq[i]));
      EXPECT_LE(distance, 1) << "frequency " << i;
      if (distance == 0) ++equal;
    }
    RecordProperty(golden.name, std::to_string(equal) + " equal of " + std::to_string(ours.size()));
    EXPECT_GE(equal, static_cast<int>(ours.size()) - 1);  // all, or all but one (a power of theirs)
  }
}

TEST(RopeFrequencies, Llama3KeepsShortWavesAndDividesLongOnes) {
  const RopeOptions plain{.head_dim = 128, .theta = 500000};
  RopeOptions scaled = plain;
  scaled.scaling = RopeScaling::kLlama3;
  scaled.factor = 8;
  const std::vector<float> before = rope_inv_freq(plain);
  const std::vector<float> after = rope_inv_freq(scaled);
  EXPECT_EQ(after.front(), before.front());
  EXPECT_EQ(after.back(), before.back() / 8);
  int blended = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_LE(after[i], before[i]);
    EXPECT_GE(after[i], before[i] / 8);
    if (after[i] != before[i] && after[i] != before[i] / 8) ++blended;
  }
  EXPECT_GT(blended, 2);
}

TEST(RopeFrequencies, RefusesImpossibleNumbersInOneSentence) {
  const auto sentence = [](const RopeOptions& options) {
    try {
      rope_inv_freq(options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string who = "compute RoPE frequencies: ";
  EXPECT_EQ(sentence({.head_dim = 7}), who + "head_dim must be even and at least 2, got 7");
  EXPECT_EQ(sentence({.head_dim = 0}), who + "head_dim must be even and at least 2, got 0");
  EXPECT_EQ(sentence({.head_dim = 8, .theta = -1}),
            who + "theta must be finite and positive, got -1.000000");
  EXPECT_EQ(sentence({.head_dim = 8, .scaling = RopeScaling::kLinear, .factor = 0}),
            who + "factor must be finite and positive, got 0.000000");
  EXPECT_EQ(sentence({.head_dim = 8,
                      .scaling = RopeScaling::kLlama3,
                      .factor = 8,
                      .low_freq_factor = 4,
                      .high_freq_factor = 4}),
            who + "high_freq_factor must be finite and greater than low_freq_factor, got 4.000000");
  EXPECT_EQ(
      sentence(
          {.head_dim = 8, .scaling = RopeScaling::kLlama3, .original_max_position_embeddings = 0}),
      who + "original_max_position_embeddings must be finite and positive, got 0.000000");
}

}  // namespace
}  // namespace tileweave

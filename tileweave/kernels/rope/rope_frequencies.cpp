#include "tileweave/kernels/rope/rope_frequencies.h"

#include <cmath>
#include <numbers>
#include <string>

#include "tileweave/core/error.h"

namespace tileweave {
namespace {

void need(bool holds, const char* expected, const std::string& got) {
  require(holds, "compute RoPE frequencies", expected, got);
}

void need_positive(double value, const char* expected) {
  need(std::isfinite(value) && value > 0, expected, std::to_string(value));
}

void check(const RopeOptions& options) {
  need(options.head_dim >= 2 && options.head_dim % 2 == 0, "head_dim must be even and at least 2",
       std::to_string(options.head_dim));
  need_positive(options.theta, "theta must be finite and positive");
  if (options.scaling == RopeScaling::kDefault) return;
  need_positive(options.factor, "factor must be finite and positive");
  if (options.scaling == RopeScaling::kLinear) return;
  need_positive(options.low_freq_factor, "low_freq_factor must be finite and positive");
  need(
      std::isfinite(options.high_freq_factor) && options.high_freq_factor > options.low_freq_factor,
      "high_freq_factor must be finite and greater than low_freq_factor",
      std::to_string(options.high_freq_factor));
  need_positive(options.original_max_position_embeddings,
                "original_max_position_embeddings must be finite and positive");
}

/// One frequency under the rule of Llama 3.1: long wavelengths divided by the factor, short ones
/// kept, those between blended. Every step in fp32, as there.
float llama3(float frequency, const RopeOptions& options) {
  const auto factor = static_cast<float>(options.factor);
  const auto low = static_cast<float>(options.low_freq_factor);
  const auto context = static_cast<float>(options.original_max_position_embeddings);
  const auto longest =
      static_cast<float>(options.original_max_position_embeddings / options.low_freq_factor);
  const auto shortest =
      static_cast<float>(options.original_max_position_embeddings / options.high_freq_factor);
  const float wavelength = 1.0F / frequency * static_cast<float>(2 * std::numbers::pi);
  if (wavelength > longest) return frequency / factor;
  if (wavelength < shortest) return frequency;
  const float smooth = (1.0F / wavelength * context - low) /
                       static_cast<float>(options.high_freq_factor - options.low_freq_factor);
  return (1.0F - smooth) * frequency / factor + smooth * frequency;
}

}  // namespace

std::vector<float> rope_inv_freq(const RopeOptions& options) {
  check(options);
  std::vector<float> frequencies(static_cast<std::size_t>(options.head_dim / 2));
  const auto theta = static_cast<float>(options.theta);
  const auto dim = static_cast<float>(options.head_dim);
  float exponent = 0;
  for (float& frequency : frequencies) {
    const double power = std::pow(static_cast<double>(theta), static_cast<double>(exponent / dim));
    frequency = 1.0F / static_cast<float>(power);
    if (options.scaling == RopeScaling::kLinear) frequency /= static_cast<float>(options.factor);
    if (options.scaling == RopeScaling::kLlama3) frequency = llama3(frequency, options);
    exponent += 2;
  }
  return frequencies;
}

}  // namespace tileweave

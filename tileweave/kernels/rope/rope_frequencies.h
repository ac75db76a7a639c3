// Inverse frequencies of rotary embeddings, as Hugging Face transformers computes them (fp32).
//
// Pure host function; its result is the `inv_freq` constant of rope_kv, (head_dim / 2). Throws
// Error for numbers that no model has (odd head_dim, factors that are not positive or finite).
#pragma once

#include <cstdint>
#include <vector>

namespace tileweave {

enum class RopeScaling : std::uint8_t { kDefault, kLinear, kLlama3 };

struct RopeOptions {
  std::int64_t head_dim = 0;
  double theta = 10000;  // rope_theta
  RopeScaling scaling = RopeScaling::kDefault;
  double factor = 1;                               // linear, llama3
  double low_freq_factor = 1;                      // llama3
  double high_freq_factor = 4;                     // llama3
  double original_max_position_embeddings = 8192;  // llama3
};

std::vector<float> rope_inv_freq(const RopeOptions& options);

}  // namespace tileweave

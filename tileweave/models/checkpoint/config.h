// config.json and generation_config.json of Llama (2, 3, 3.1, 3.2 and what shares the form, such as
// SmolLM2) and dense Qwen3 models.
//
// Every value is checked before it is believed: type, range and agreement with the others. What
// this library cannot compute (another architecture, activation or RoPE scaling, sliding windows,
// quantised weights) is refused by name. A key that is missing or null takes the value that Hugging
// Face's classes give it; the five sizes of the model have no such value and must be there. Throws
// Error naming file and key. Plain data, no pointers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tileweave/core/dtype.h"
#include "tileweave/models/json/json_file.h"

namespace tileweave {

enum class Architecture : std::uint8_t { kLlama, kQwen3 };
enum class RopeType : std::uint8_t { kDefault, kLinear, kLlama3 };

const char* name_of(Architecture architecture);  // "LlamaForCausalLM"
const char* name_of(RopeType type);              // "llama3", as in config.json

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double factor = 1.0;                                // linear, llama3
  double low_freq_factor = 1.0;                       // llama3
  double high_freq_factor = 1.0;                      // llama3
  std::int64_t original_max_position_embeddings = 0;  // llama3
};

struct ModelConfig {
  Architecture architecture = Architecture::kLlama;
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_layers = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;  // divides num_heads
  std::int64_t head_dim = 0;      // even; num_heads * head_dim may differ from hidden_size
  std::int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  bool tie_word_embeddings = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  RopeConfig rope;
  std::optional<DType> dtype;  // of the weights, as the file claims; the weights decide
  std::vector<std::int64_t> eos_token_ids;
  std::optional<std::int64_t> bos_token_id;

  bool has_qk_norm() const { return architecture == Architecture::kQwen3; }
};

ModelConfig parse_config(const JsonFile& file);
/// `path` is that of config.json.
ModelConfig read_config(const std::string& path);

struct GenerationConfig {
  std::vector<std::int64_t> eos_token_ids;
  std::optional<std::int64_t> bos_token_id;
  bool do_sample = false;
  double temperature = 1.0;
  std::int64_t top_k = 50;  // 0: no limit
  double top_p = 1.0;
  double min_p = 0.0;
  double repetition_penalty = 1.0;
};

/// Token ids that the file does not name are those of `config`.
GenerationConfig parse_generation_config(const JsonFile& file, const ModelConfig& config);
/// Without a path: what Hugging Face generates with when the file is missing.
GenerationConfig read_generation_config(const std::optional<std::string>& path,
                                        const ModelConfig& config);

}  // namespace tileweave

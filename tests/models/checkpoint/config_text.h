// A good config.json to spoil: members of `changes` replace those of the base, "REMOVE" drops one.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tileweave/models/checkpoint/config.h"

namespace tileweave::testing {

inline nlohmann::json llama_json() {
  return nlohmann::json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256,
    "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "hidden_act": "silu",
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
    "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "tie_word_embeddings": true, "attention_bias": false, "mlp_bias": false,
    "torch_dtype": "bfloat16", "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009]})");
}

inline nlohmann::json qwen3_json() {
  return nlohmann::json::parse(R"({
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 151936,
    "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "hidden_act": "silu",
    "max_position_embeddings": 40960, "max_window_layers": 28, "rms_norm_eps": 1e-06,
    "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
    "tie_word_embeddings": true, "attention_bias": false, "use_sliding_window": false,
    "torch_dtype": "bfloat16", "bos_token_id": 151643, "eos_token_id": 151645})");
}

inline std::string changed(nlohmann::json base, const std::string& changes) {
  const nlohmann::json parsed = nlohmann::json::parse(changes);
  for (const auto& [key, value] : parsed.items()) {
    if (value == "REMOVE") {
      base.erase(key);
    } else {
      base[key] = value;
    }
  }
  return base.dump();
}

inline ModelConfig config_of(const std::string& text) {
  return parse_config(JsonFile::parse(text, "config.json"));
}

}  // namespace tileweave::testing

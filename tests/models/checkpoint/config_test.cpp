#include "tileweave/models/checkpoint/config.h"

#include <gtest/gtest.h>

#include "tests/models/checkpoint/config_text.h"
#include "tests/models/checkpoint/temporary_folder.h"

namespace tileweave {
namespace {

using testing::changed;
using testing::config_of;
using testing::llama_json;
using testing::qwen3_json;

ModelConfig llama_with(const std::string& changes) {
  return config_of(changed(llama_json(), changes));
}
ModelConfig qwen3_with(const std::string& changes) {
  return config_of(changed(qwen3_json(), changes));
}

TEST(Config, ReadsLlama32) {
  const ModelConfig config = llama_with("{}");
  EXPECT_EQ(config.architecture, Architecture::kLlama);
  EXPECT_FALSE(config.has_qk_norm());
  EXPECT_EQ(config.vocab_size, 128256);
  EXPECT_EQ(config.hidden_size, 2048);
  EXPECT_EQ(config.intermediate_size, 8192);
  EXPECT_EQ(config.num_layers, 16);
  EXPECT_EQ(config.num_heads, 32);
  EXPECT_EQ(config.num_kv_heads, 8);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.max_position_embeddings, 131072);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_FALSE(config.attention_bias);
  EXPECT_FALSE(config.mlp_bias);
  EXPECT_EQ(config.rope.type, RopeType::kLlama3);
  EXPECT_EQ(config.rope.theta, 500000.0);
  EXPECT_EQ(config.rope.factor, 32.0);
  EXPECT_EQ(config.rope.low_freq_factor, 1.0);
  EXPECT_EQ(config.rope.high_freq_factor, 4.0);
  EXPECT_EQ(config.rope.original_max_position_embeddings, 8192);
  EXPECT_EQ(config.dtype, DType::kBF16);
  EXPECT_EQ(config.eos_token_ids, (std::vector<std::int64_t>{128001, 128008, 128009}));
  EXPECT_EQ(config.bos_token_id, 128000);
}

TEST(Config, ReadsQwen3) {
  const ModelConfig config = qwen3_with("{}");
  EXPECT_EQ(config.architecture, Architecture::kQwen3);
  EXPECT_TRUE(config.has_qk_norm());
  EXPECT_EQ(config.head_dim, 128);  // not hidden_size / num_heads
  EXPECT_EQ(config.rope.type, RopeType::kDefault);
  EXPECT_EQ(config.rope.theta, 1e6);
  EXPECT_EQ(config.eos_token_ids, (std::vector<std::int64_t>{151645}));
}

TEST(Config, TakesHuggingFacesValuesForWhatIsMissingOrNull) {
  const std::string keys[] = {"num_key_value_heads", "head_dim",
                              "rms_norm_eps",        "rope_theta",
                              "rope_scaling",        "tie_word_embeddings",
                              "attention_bias",      "mlp_bias",
                              "hidden_act",          "eos_token_id",
                              "bos_token_id",        "torch_dtype",
                              "model_type",          "max_position_embeddings"};
  for (const char* spoiled : {"\"REMOVE\"", "null"}) {
    SCOPED_TRACE(spoiled);
    std::string changes = "{";
    for (const std::string& key : keys) {
      changes += (changes.size() > 1 ? ",\"" : "\"") + key + "\":" + spoiled;
    }
    const ModelConfig config = llama_with(changes + "}");
    EXPECT_EQ(config.num_kv_heads, 32);
    EXPECT_EQ(config.head_dim, 64);
    EXPECT_EQ(config.rms_norm_eps, 1e-6);
    EXPECT_EQ(config.rope.type, RopeType::kDefault);
    EXPECT_EQ(config.rope.theta, 10000.0);
    EXPECT_FALSE(config.tie_word_embeddings);
    EXPECT_FALSE(config.attention_bias);
    EXPECT_FALSE(config.mlp_bias);
    EXPECT_EQ(config.max_position_embeddings, 2048);
    EXPECT_EQ(config.dtype, std::nullopt);
    EXPECT_TRUE(config.eos_token_ids.empty());
    EXPECT_EQ(config.bos_token_id, std::nullopt);
  }
  const ModelConfig qwen3 = qwen3_with(
      R"({"tie_word_embeddings": "REMOVE", "use_sliding_window": "REMOVE",
          "architectures": "REMOVE", "max_position_embeddings": "REMOVE", "head_dim": "REMOVE"})");
  EXPECT_FALSE(qwen3.tie_word_embeddings);
  EXPECT_EQ(qwen3.max_position_embeddings, 32768);
  EXPECT_EQ(qwen3.head_dim, 128);  // Qwen3Config's own, not hidden_size / num_heads
  EXPECT_EQ(qwen3_with(R"({"head_dim": null})").head_dim, 64);
}

TEST(Config, ReadsBothSpellingsOfRope) {
  const RopeConfig older = llama_with("{}").rope;
  const RopeConfig type = llama_with(R"({"rope_scaling": {"type": "llama3", "factor": 32,
      "high_freq_factor": 4, "low_freq_factor": 1, "original_max_position_embeddings": 8192}})")
                              .rope;
  const RopeConfig newer =
      llama_with(R"({"rope_scaling": "REMOVE", "rope_theta": "REMOVE", "rope_parameters":
      {"rope_type": "llama3", "rope_theta": 500000, "factor": 32, "high_freq_factor": 4,
       "low_freq_factor": 1, "original_max_position_embeddings": 8192}})")
          .rope;
  for (const RopeConfig& rope : {type, newer}) {
    EXPECT_EQ(rope.type, older.type);
    EXPECT_EQ(rope.theta, older.theta);
    EXPECT_EQ(rope.factor, older.factor);
    EXPECT_EQ(rope.low_freq_factor, older.low_freq_factor);
    EXPECT_EQ(rope.high_freq_factor, older.high_freq_factor);
    EXPECT_EQ(rope.original_max_position_embeddings, older.original_max_position_embeddings);
  }
  const RopeConfig linear =
      llama_with(R"({"rope_scaling": {"type": "linear", "factor": 2.5}})").rope;
  EXPECT_EQ(linear.type, RopeType::kLinear);
  EXPECT_EQ(linear.factor, 2.5);
  EXPECT_EQ(linear.theta, 500000.0);
  const RopeConfig plain =
      llama_with(R"({"rope_scaling": "REMOVE", "rope_parameters": {"rope_theta": 123.5}})").rope;
  EXPECT_EQ(plain.type, RopeType::kDefault);
  EXPECT_EQ(plain.theta, 123.5);  // the one inside wins
  EXPECT_EQ(llama_with(R"({"rope_scaling": {}})").rope.type, RopeType::kDefault);
  EXPECT_EQ(llama_with(R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0,
      "high_freq_factor": 4, "low_freq_factor": 1}})")
                .rope.original_max_position_embeddings,
            131072);
}

TEST(Config, AcceptsWhatMeansFullAttention) {
  EXPECT_EQ(qwen3_with(R"({"num_hidden_layers": 2, "sliding_window": 4096,
                           "layer_types": ["full_attention", "full_attention"]})")
                .num_layers,
            2);
  EXPECT_EQ(llama_with(R"({"architectures": "REMOVE"})").architecture, Architecture::kLlama);
  EXPECT_EQ(llama_with(R"({"torch_dtype": "REMOVE", "dtype": "float16"})").dtype, DType::kF16);
  EXPECT_TRUE(llama_with(R"({"attention_bias": true})").attention_bias);
  EXPECT_TRUE(llama_with(R"({"mlp_bias": true})").mlp_bias);
}

TEST(GenerationConfig, ReadsWhatIsThere) {
  const ModelConfig config = llama_with("{}");
  const GenerationConfig got = parse_generation_config(
      JsonFile::parse(R"({"eos_token_id": [1, 2], "bos_token_id": 3, "do_sample": true,
                          "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.1,
                          "repetition_penalty": 1.1, "transformers_version": "4.51.0"})",
                      "generation_config.json"),
      config);
  EXPECT_EQ(got.eos_token_ids, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(got.bos_token_id, 3);
  EXPECT_TRUE(got.do_sample);
  EXPECT_EQ(got.temperature, 0.6);
  EXPECT_EQ(got.top_k, 20);
  EXPECT_EQ(got.top_p, 0.95);
  EXPECT_EQ(got.min_p, 0.1);
  EXPECT_EQ(got.repetition_penalty, 1.1);
}

TEST(GenerationConfig, FallsBackToTheModelsTokensAndHuggingFacesValues) {
  const testing::TemporaryFolder folder;
  const ModelConfig config = llama_with("{}");
  const std::string path =
      folder.write("generation_config.json", R"({"temperature": null, "eos_token_id": null})");
  for (const GenerationConfig& got :
       {read_generation_config(std::nullopt, config), read_generation_config(path, config)}) {
    EXPECT_EQ(got.eos_token_ids, config.eos_token_ids);
    EXPECT_EQ(got.bos_token_id, config.bos_token_id);
    EXPECT_FALSE(got.do_sample);
    EXPECT_EQ(got.temperature, 1.0);
    EXPECT_EQ(got.top_k, 50);
    EXPECT_EQ(got.top_p, 1.0);
    EXPECT_EQ(got.min_p, 0.0);
    EXPECT_EQ(got.repetition_penalty, 1.0);
  }
}

}  // namespace
}  // namespace tileweave

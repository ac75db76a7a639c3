#include "tileweave/models/checkpoint/expected_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/models/checkpoint/config_text.h"
#include "tests/models/checkpoint/temporary_folder.h"

namespace tileweave {
namespace {

using testing::changed;
using testing::config_of;
using testing::expect_part;
using testing::llama_json;
using testing::qwen3_json;
using testing::TemporaryFolder;

// Totals that the models' own cards and `sum(p.numel())` of Hugging Face's classes give.
TEST(ExpectedTensors, CountTheParametersOfKnownModels) {
  EXPECT_EQ(parameter_count(config_of(llama_json().dump())), 1'235'814'400);  // Llama-3.2-1B
  EXPECT_EQ(parameter_count(config_of(qwen3_json().dump())), 596'049'920);    // Qwen3-0.6B
  const std::string smol = R"({"vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
      "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
      "head_dim": "REMOVE", "rope_scaling": null})";
  EXPECT_EQ(parameter_count(config_of(changed(llama_json(), smol))), 134'515'008);  // SmolLM2-135M
  const std::string llama2 = R"({"vocab_size": 32000, "hidden_size": 4096,
      "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": null, "head_dim": null, "rope_scaling": null,
      "tie_word_embeddings": false})";
  EXPECT_EQ(parameter_count(config_of(changed(llama_json(), llama2))), 6'738'415'616);
}

TEST(ExpectedTensors, AgreeWithTheirCount) {
  const ModelConfig config = config_of(changed(
      llama_json(), R"({"attention_bias": true, "mlp_bias": true, "tie_word_embeddings": false})"));
  std::int64_t total = 0;
  for (const ExpectedTensor& tensor : expected_tensors(config)) {
    std::int64_t count = 1;
    for (const std::int64_t extent : tensor.shape) count *= extent;
    total += count;
  }
  EXPECT_EQ(parameter_count(config), total);
}

ModelConfig tiny(const std::string& changes = "{}") {
  return config_of(changed(
      qwen3_json(), changed(nlohmann::json::parse(
                                R"({"vocab_size": 7, "hidden_size": 4, "intermediate_size": 6,
                                    "num_hidden_layers": 2, "num_attention_heads": 4,
                                    "num_key_value_heads": 2, "head_dim": 6})"),
                            changes)));
}

TEST(ExpectedTensors, AreNamedAsInHuggingFacesFiles) {
  std::vector<std::string> got;
  for (const ExpectedTensor& tensor : expected_tensors(tiny(R"({"num_hidden_layers": 1})"))) {
    got.push_back(tensor.name + " " + shape_text(tensor.shape));
  }
  const std::vector<std::string> expected = {"model.embed_tokens.weight (7, 4)",
                                             "model.layers.0.input_layernorm.weight (4)",
                                             "model.layers.0.self_attn.q_proj.weight (24, 4)",
                                             "model.layers.0.self_attn.k_proj.weight (12, 4)",
                                             "model.layers.0.self_attn.v_proj.weight (12, 4)",
                                             "model.layers.0.self_attn.q_norm.weight (6)",
                                             "model.layers.0.self_attn.k_norm.weight (6)",
                                             "model.layers.0.self_attn.o_proj.weight (4, 24)",
                                             "model.layers.0.post_attention_layernorm.weight (4)",
                                             "model.layers.0.mlp.gate_proj.weight (6, 4)",
                                             "model.layers.0.mlp.up_proj.weight (6, 4)",
                                             "model.layers.0.mlp.down_proj.weight (4, 6)",
                                             "model.norm.weight (4)"};
  EXPECT_EQ(got, expected);
}

// The checkpoint that `config` asks for, with `extra` added and `missing` left out.
void write_model(const TemporaryFolder& folder, const ModelConfig& config,
                 const std::vector<TensorToWrite>& extra = {}, const std::string& missing = "") {
  static const std::vector<float> kZeros(1000, 0.0F);
  std::vector<TensorToWrite> tensors = extra;
  for (const ExpectedTensor& each : expected_tensors(config)) {
    std::size_t size = sizeof(float);
    for (const std::int64_t extent : each.shape) size *= static_cast<std::size_t>(extent);
    const bool is_replaced = std::any_of(
        extra.begin(), extra.end(), [&](const TensorToWrite& e) { return e.name == each.name; });
    if (each.name == missing || is_replaced) continue;
    tensors.push_back(
        {each.name, DType::kF32, each.shape, std::as_bytes(std::span(kZeros)).first(size)});
  }
  write_safetensors(folder.path("model.safetensors"), tensors);
}

std::string refusal_of(const TemporaryFolder& folder, const ModelConfig& config) {
  return testing::refusal_of(
      [&] { require_expected_tensors(config, Checkpoint::open(folder.path())); });
}

TEST(ExpectedTensors, AreAllInAWholeCheckpoint) {
  const TemporaryFolder folder;
  const ModelConfig config = tiny();
  const std::vector<float> zeros(28, 0.0F);
  const auto bytes = std::as_bytes(std::span(zeros));
  write_model(folder, config);
  EXPECT_EQ(refusal_of(folder, config), "");
  // The config ties the head, so the file's own is not used; old files hold buffers.
  write_model(
      folder, config,
      {{"lm_head.weight", DType::kF32, {7, 4}, bytes},
       {"model.layers.0.self_attn.rotary_emb.inv_freq", DType::kF32, {3}, bytes.first(12)}});
  EXPECT_EQ(refusal_of(folder, config), "");
  // Weights may be of 16 bits.
  write_model(folder, config,
              {{"model.norm.weight", DType::kBF16, {4}, bytes.first(8)},
               {"model.layers.0.input_layernorm.weight", DType::kF16, {4}, bytes.first(8)}});
  EXPECT_EQ(refusal_of(folder, config), "");
}

TEST(ExpectedTensors, AreWhatHuggingFaceWritesForItsModels) {
  int num_models = 0;
  for (const auto& each : std::filesystem::directory_iterator(TW_SOURCE_DIR "/tests/models/data")) {
    const std::string config = (each.path() / "config.json").string();
    if (!std::filesystem::exists(config)) continue;
    SCOPED_TRACE(config);
    require_expected_tensors(read_config(config), Checkpoint::open(each.path().string()));
    ++num_models;
  }
  EXPECT_GT(num_models, 0);
}

TEST(ExpectedTensors, AreNamedWhenTheCheckpointHasOthers) {
  const TemporaryFolder folder;
  const std::string file = folder.path("model.safetensors");
  const ModelConfig config = tiny();
  const ModelConfig untied = tiny(R"({"tie_word_embeddings": false})");
  const std::vector<float> zeros(28, 0.0F);
  const auto bytes = std::as_bytes(std::span(zeros));

  write_model(folder, config, {}, "model.layers.1.mlp.up_proj.weight");
  EXPECT_EQ(refusal_of(folder, config),
            "load model " + folder.path() +
                ": tensor \"model.layers.1.mlp.up_proj.weight\" of shape (6, 4), got none");
  write_model(folder, config);
  expect_part(refusal_of(folder, untied), "\"lm_head.weight\" of shape (7, 4), as tie_word_embed");
  expect_part(refusal_of(folder, tiny(R"({"attention_bias": true})")), "q_proj.bias");

  write_model(folder, config, {{"model.norm.weight", DType::kF32, {5}, bytes.first(20)}});
  EXPECT_EQ(
      refusal_of(folder, config),
      "load " + file + ": tensor \"model.norm.weight\" of shape (4), as config.json says, got (5)");
  write_model(folder, config, {{"model.norm.weight", DType::kF32, {4, 1}, bytes.first(16)}});
  expect_part(refusal_of(folder, config), "of shape (4), as config.json says, got (4, 1)");
  write_model(folder, config, {{"model.norm.weight", DType::kI32, {4}, bytes.first(16)}});
  expect_part(refusal_of(folder, config),
              "\"model.norm.weight\" of dtype F32, BF16 or F16, got I32");

  write_model(folder, config,
              {{"model.layers.2.mlp.up_proj.weight", DType::kF32, {6, 4}, bytes.first(96)}});
  expect_part(refusal_of(folder, config),
              "only tensors that config.json gives a place, got \"model.layers.2.mlp.up_proj");
  write_model(folder, config,
              {{"model.layers.0.self_attn.q_proj.bias", DType::kF32, {24}, bytes.first(96)}});
  expect_part(refusal_of(folder, config), "q_proj.bias\" of shape (24)");
}

}  // namespace
}  // namespace tileweave

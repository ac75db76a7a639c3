#include "tileweave/models/checkpoint/expected_tensors.h"

#include <set>
#include <string_view>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"

namespace tileweave {
namespace {

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

struct Linear {
  const char* name;
  std::int64_t outputs;
  std::int64_t inputs;
  bool has_bias;
};

void append_layer(const ModelConfig& config, std::int64_t layer,
                  std::vector<ExpectedTensor>& tensors) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t inner = config.intermediate_size;
  const std::int64_t query = config.num_heads * config.head_dim;
  const std::int64_t kv = config.num_kv_heads * config.head_dim;
  const auto append_linear = [&](const Linear& linear) {
    const std::string name = prefix + linear.name;
    tensors.push_back({name + ".weight", {linear.outputs, linear.inputs}});
    if (linear.has_bias) tensors.push_back({name + ".bias", {linear.outputs}});
  };
  tensors.push_back({prefix + "input_layernorm.weight", {hidden}});
  append_linear({"self_attn.q_proj", query, hidden, config.attention_bias});
  append_linear({"self_attn.k_proj", kv, hidden, config.attention_bias});
  append_linear({"self_attn.v_proj", kv, hidden, config.attention_bias});
  if (config.has_qk_norm()) {
    tensors.push_back({prefix + "self_attn.q_norm.weight", {config.head_dim}});
    tensors.push_back({prefix + "self_attn.k_norm.weight", {config.head_dim}});
  }
  append_linear({"self_attn.o_proj", hidden, query, config.attention_bias});
  tensors.push_back({prefix + "post_attention_layernorm.weight", {hidden}});
  append_linear({"mlp.gate_proj", inner, hidden, config.mlp_bias});
  append_linear({"mlp.up_proj", inner, hidden, config.mlp_bias});
  append_linear({"mlp.down_proj", hidden, inner, config.mlp_bias});
}

std::int64_t element_count(const std::vector<ExpectedTensor>& tensors) {
  std::int64_t total = 0;
  for (const ExpectedTensor& tensor : tensors) {
    std::int64_t count = 1;
    for (const std::int64_t extent : tensor.shape) count *= extent;
    total += count;
  }
  return total;
}

bool is_unused(std::string_view name, const ModelConfig& config) {
  return name.ends_with("rotary_emb.inv_freq") || (config.tie_word_embeddings && name == kHead);
}

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) {
  std::vector<ExpectedTensor> tensors;
  tensors.push_back({kEmbedding, {config.vocab_size, config.hidden_size}});
  for (std::int64_t i = 0; i < config.num_layers; ++i) append_layer(config, i, tensors);
  tensors.push_back({"model.norm.weight", {config.hidden_size}});
  if (!config.tie_word_embeddings) {
    tensors.push_back({kHead, {config.vocab_size, config.hidden_size}});
  }
  return tensors;
}

std::int64_t parameter_count(const ModelConfig& config) {
  std::vector<ExpectedTensor> layer;
  append_layer(config, 0, layer);
  ModelConfig without_layers = config;
  without_layers.num_layers = 0;
  return element_count(expected_tensors(without_layers)) + config.num_layers * element_count(layer);
}

void require_expected_tensors(const ModelConfig& config, const Checkpoint& checkpoint) {
  std::set<std::string, std::less<>> expected;
  for (const ExpectedTensor& tensor : expected_tensors(config)) {
    expected.insert(tensor.name);
    const StoredTensor* stored = checkpoint.find(tensor.name);
    if (stored == nullptr) {
      throw Error("load model " + checkpoint.directory(),
                  "tensor " + in_quotes(tensor.name) + " of shape " + shape_text(tensor.shape) +
                      (tensor.name == kHead ? ", as tie_word_embeddings is false" : ""),
                  "none");
    }
    const std::string operation = "load " + stored->file;
    if (stored->shape != tensor.shape) {
      throw Error(operation,
                  "tensor " + in_quotes(tensor.name) + " of shape " + shape_text(tensor.shape) +
                      ", as config.json says",
                  shape_text(stored->shape));
    }
    const DType dtype = dtype_of(*stored);
    if (dtype != DType::kF32 && dtype != DType::kBF16 && dtype != DType::kF16) {
      throw Error(operation, "tensor " + in_quotes(tensor.name) + " of dtype F32, BF16 or F16",
                  stored->dtype_name);
    }
  }
  for (const std::string& name : checkpoint.names()) {
    if (!expected.contains(name) && !is_unused(name, config)) {
      throw Error("load " + checkpoint.find(name)->file,
                  "only tensors that config.json gives a place",
                  in_quotes(name) + " of shape " + shape_text(checkpoint.find(name)->shape));
    }
  }
}

}  // namespace tileweave

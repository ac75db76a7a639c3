#include "tileweave/models/checkpoint/config.h"

#include <limits>
#include <string_view>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/models/checkpoint/rope_config.h"
#include "tileweave/models/checkpoint/token_ids.h"

namespace tileweave {
namespace {

// Beyond every model of these kinds, and small enough that no product of them overflows: a layer
// has fewer than 2^48 parameters, a model fewer than 2^62.
constexpr std::int64_t kMaxVocabulary = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxHidden = std::int64_t{1} << 20;
constexpr std::int64_t kMaxIntermediate = std::int64_t{1} << 24;
constexpr std::int64_t kMaxLayers = 10'000;
constexpr std::int64_t kMaxHeads = std::int64_t{1} << 12;
constexpr std::int64_t kMaxHeadDim = std::int64_t{1} << 12;
constexpr std::int64_t kMaxPositions = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kQwen3HeadDim = 128;  // of Qwen3Config, when the key is missing

Architecture architecture_of(const JsonNode& root) {
  std::optional<Architecture> named;
  if (const auto list = root.find("architectures"); list && list->length() > 0) {
    const JsonNode first = list->element(0);
    if (first.string() == "LlamaForCausalLM") named = Architecture::kLlama;
    if (first.string() == "Qwen3ForCausalLM") named = Architecture::kQwen3;
    if (!named) first.refuse("LlamaForCausalLM or Qwen3ForCausalLM");
  }
  std::optional<Architecture> type;
  if (const auto node = root.find("model_type")) {
    if (node->string() == "llama") type = Architecture::kLlama;
    if (node->string() == "qwen3") type = Architecture::kQwen3;
    if (!type) node->refuse("llama or qwen3");
    if (named && named != type) {
      node->refuse("the type of architecture " + std::string(name_of(*named)));
    }
  }
  if (!named && !type) {
    throw Error("read " + root.file(), "architectures or model_type to name the architecture",
                "neither key");
  }
  return named ? *named : *type;
}

std::optional<DType> read_dtype(const JsonNode& root) {
  auto node = root.find("dtype");
  if (!node) node = root.find("torch_dtype");
  if (!node) return std::nullopt;
  const std::string& name = node->string();
  if (name == "float32") return DType::kF32;
  if (name == "bfloat16") return DType::kBF16;
  if (name == "float16") return DType::kF16;
  node->refuse("float32, bfloat16 or float16");
}

bool read_flag(const JsonNode& root, const char* key) {
  const auto node = root.find(key);
  return node && node->boolean();
}

void read_heads(const JsonNode& root, ModelConfig& config) {
  config.num_heads = root.at("num_attention_heads").integer(1, kMaxHeads);
  config.num_kv_heads = config.num_heads;
  if (const auto node = root.find("num_key_value_heads")) {
    config.num_kv_heads = node->integer(1, kMaxHeads);
    if (config.num_heads % config.num_kv_heads != 0) {
      node->refuse("a divisor of num_attention_heads, " + std::to_string(config.num_heads));
    }
  }
  if (const auto node = root.find("head_dim")) {
    config.head_dim = node->integer(1, kMaxHeadDim);
    if (config.head_dim % 2 != 0) node->refuse("even, because RoPE turns pairs");
    return;
  }
  if (config.architecture == Architecture::kQwen3 && !root.json().contains("head_dim")) {
    config.head_dim = kQwen3HeadDim;
    return;
  }
  const JsonNode hidden = root.at("hidden_size");
  if (config.hidden_size % (2 * config.num_heads) != 0 ||
      config.hidden_size / config.num_heads > kMaxHeadDim) {
    hidden.refuse("an even multiple, at most " + std::to_string(kMaxHeadDim) +
                  ", of num_attention_heads, " + std::to_string(config.num_heads) +
                  ", as there is no head_dim");
  }
  config.head_dim = config.hidden_size / config.num_heads;
}

void refuse_what_is_not_computed(const JsonNode& root, const ModelConfig& config) {
  if (const auto node = root.find("hidden_act"); node && node->string() != "silu") {
    node->refuse("silu, the only activation there is");
  }
  if (const auto node = root.find("quantization_config")) {
    const auto method = node->find("quant_method");
    node->refuse("missing, as quantised weights are not supported",
                 method ? "quant_method " + describe(method->json()) : describe(node->json()));
  }
  if (const auto node = root.find("partial_rotary_factor"); node && node->number(0, 1) != 1) {
    node->refuse("1, as RoPE turns whole heads");
  }
  if (config.architecture != Architecture::kQwen3) return;
  if (const auto node = root.find("use_sliding_window"); node && node->boolean()) {
    node->refuse("false, as sliding windows are not supported");
  }
  if (const auto node = root.find("layer_types")) {
    if (node->length() != static_cast<std::size_t>(config.num_layers)) {
      node->refuse("an array with one type for each of the " + std::to_string(config.num_layers) +
                   " layers");
    }
    for (std::size_t i = 0; i < node->length(); ++i) {
      const JsonNode type = node->element(i);
      if (type.string() != "full_attention") type.refuse("full_attention, the only type there is");
    }
  }
}

}  // namespace

const char* name_of(Architecture architecture) {
  return architecture == Architecture::kLlama ? "LlamaForCausalLM" : "Qwen3ForCausalLM";
}

ModelConfig parse_config(const JsonFile& file) {
  const JsonNode root = file.root();
  root.require_object();
  ModelConfig config;
  config.architecture = architecture_of(root);
  const bool is_llama = config.architecture == Architecture::kLlama;
  config.vocab_size = root.at("vocab_size").integer(1, kMaxVocabulary);
  config.hidden_size = root.at("hidden_size").integer(1, kMaxHidden);
  config.intermediate_size = root.at("intermediate_size").integer(1, kMaxIntermediate);
  config.num_layers = root.at("num_hidden_layers").integer(1, kMaxLayers);
  read_heads(root, config);
  config.max_position_embeddings = is_llama ? 2048 : 32768;
  if (const auto node = root.find("max_position_embeddings")) {
    config.max_position_embeddings = node->integer(1, kMaxPositions);
  }
  if (const auto node = root.find("rms_norm_eps")) config.rms_norm_eps = node->number(1e-30, 1.0);
  config.tie_word_embeddings = read_flag(root, "tie_word_embeddings");
  config.attention_bias = read_flag(root, "attention_bias");
  config.mlp_bias = is_llama && read_flag(root, "mlp_bias");
  config.rope = read_rope_config(root, config.max_position_embeddings);
  config.dtype = read_dtype(root);
  config.eos_token_ids = read_eos_token_ids(root);
  config.bos_token_id = read_bos_token_id(root);
  refuse_what_is_not_computed(root, config);
  return config;
}

ModelConfig read_config(const std::string& path) {
  return parse_config(JsonFile::read(path));
}

}  // namespace tileweave

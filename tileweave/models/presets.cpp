#include "tileweave/models/presets.h"

#include <algorithm>
#include <cmath>

#include "tileweave/models/checkpoint/expected_tensors.h"
#include "tileweave/models/random_fill.h"
#include "tileweave/models/weight_store.h"

namespace tileweave {
namespace {

struct Preset {
  const char* name;
  Architecture architecture;
  std::int64_t hidden, inner, layers, heads, head_dim;
  bool tied;
  double rope_factor;  // of Llama's scaling
};

constexpr Preset kPresets[] = {
    {"llama-3.2-1b", Architecture::kLlama, 2048, 8192, 16, 32, 64, true, 32},
    {"llama-3.1-8b", Architecture::kLlama, 4096, 14336, 32, 32, 128, false, 8},
    {"llama-3.1-70b", Architecture::kLlama, 8192, 28672, 80, 64, 128, false, 8},
    {"qwen3-0.6b", Architecture::kQwen3, 1024, 3072, 28, 16, 128, true, 1},
    {"qwen3-1.7b", Architecture::kQwen3, 2048, 6144, 28, 16, 128, true, 1},
    {"qwen3-8b", Architecture::kQwen3, 4096, 12288, 36, 32, 128, false, 1},
};

ModelConfig config_of(const Preset& preset) {
  const bool llama = preset.architecture == Architecture::kLlama;
  ModelConfig config;
  config.architecture = preset.architecture;
  config.vocab_size = llama ? 128256 : 151936;
  config.hidden_size = preset.hidden;
  config.intermediate_size = preset.inner;
  config.num_layers = preset.layers;
  config.num_heads = preset.heads;
  config.num_kv_heads = 8;
  config.head_dim = preset.head_dim;
  config.max_position_embeddings = llama ? 131072 : 40960;
  config.rms_norm_eps = llama ? 1e-5 : 1e-6;
  config.tie_word_embeddings = preset.tied;
  config.dtype = DType::kBF16;
  config.rope.theta = llama ? 500000 : 1000000;
  if (llama) {
    config.rope.type = RopeType::kLlama3;
    config.rope.factor = preset.rope_factor;
    config.rope.low_freq_factor = 1;
    config.rope.high_freq_factor = 4;
    config.rope.original_max_position_embeddings = 8192;
  }
  config.bos_token_id = llama ? 128000 : 151643;
  config.eos_token_ids = {llama ? 128001 : 151645};
  return config;
}

/// FNV-1a: the same for every standard library.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

std::optional<ModelConfig> preset_config(const std::string& name) {
  for (const Preset& preset : kPresets) {
    if (name == preset.name) return config_of(preset);
  }
  return std::nullopt;
}

ModelWeights random_weights(Device& device, const ModelConfig& config, std::uint64_t seed,
                            Granularity granularity, const LoadProgress& progress) {
  return random_weights(device, config, seed, weight_form(numeric_form(device.name()), granularity),
                        progress);
}

ModelWeights random_weights(Device& device, const ModelConfig& config, std::uint64_t seed,
                            const WeightForm& form, const LoadProgress& progress) {
  WeightStore store(device, form);
  const std::size_t in_all = static_cast<std::size_t>(parameter_count(config)) * sizeof(BFloat16);
  ModelWeights weights =
      assemble_weights(config, store.form(), [&](const WeightSpec& spec) -> Weight {
        const bool vector = spec.shape.num_axes == 1;
        const std::int64_t columns = vector ? 1 : spec.shape[1];
        RandomFill fill{.seed = seed ^ hash_of(spec.names[0])};
        if (spec.role == WeightRole::kNorm) {
          fill.center = 1;
          fill.spread = 0.125F;
        } else if (spec.role == WeightRole::kBias) {
          fill.spread = 0.02F;
        } else {
          fill.spread = std::sqrt(3.0F / static_cast<float>(columns));  // variance 1 / K
        }
        const PlaceRows place = [&](std::int64_t first, std::int64_t count, std::byte* to) {
          fill.first = first * columns;
          fill.count = count * columns;
          fill_random_on(device, reinterpret_cast<BFloat16*>(to), fill);
        };
        Weight weight;
        if (store.form().matrices == MatrixLayout::kRowMajor || vector ||
            spec.role == WeightRole::kEmbedding) {
          weight = store.plain(spec.shape, DType::kBF16, place);
        } else {
          weight = store.packed(
              spec.shape,
              spec.role == WeightRole::kGateUp ? store.form().gate_up : StripOrder::kRows, place,
              spec.row_major);
        }
        if (progress != nullptr) progress(std::min(store.bytes(), in_all), in_all);
        return weight;
      });
  return finished(std::move(weights), config, device, store);
}

}  // namespace tileweave

#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tests/models/padded_model.h"
#include "tileweave/core/error.h"
#include "tileweave/models/checkpoint/model_directory.h"
#include "tileweave/models/weight_store.h"

namespace tileweave {
namespace {

constexpr std::int64_t kHeadDim = 64;

struct PaddedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

/// Where element i of a rotary head of `d` elements goes.
std::int64_t rotary_place(std::int64_t i, std::int64_t d) {
  return i < d / 2 ? i : kHeadDim / 2 + i - d / 2;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// What happens to a tensor's heads.
enum class Heads { kNone, kRotaryRows, kPlainRows, kPlainColumns };

struct Rule {
  Heads heads = Heads::kNone;
  double scale = 1;
};

Rule rule_of(const std::string& name, const ModelConfig& config) {
  const double wider = static_cast<double>(kHeadDim) / static_cast<double>(config.head_dim);
  const bool normed = config.has_qk_norm();
  for (const char* kind : {"weight", "bias"}) {
    const auto is = [&](const char* what) {
      return ends_with(name, std::string("self_attn.") + what + "." + kind);
    };
    // Scores are divided by sqrt(64) instead of sqrt(head_dim). A norm over 64 elements of which
    // most are zero makes queries and keys larger by sqrt(wider) each.
    if (is("q_proj")) return {Heads::kRotaryRows, normed ? 1 : std::sqrt(wider)};
    if (is("k_proj")) return {Heads::kRotaryRows};
    if (is("q_norm")) return {Heads::kRotaryRows};
    if (is("k_norm")) return {Heads::kRotaryRows, 1 / std::sqrt(wider)};
    if (is("v_proj")) return {Heads::kPlainRows};
    if (is("o_proj") && std::string(kind) == "weight") return {Heads::kPlainColumns};
  }
  return {};
}

PaddedTensor padded(const std::string& name, const StoredTensor& tensor,
                    const ModelConfig& config) {
  const Rule rule = rule_of(name, config);
  const std::int64_t d = config.head_dim;
  const bool vector = tensor.shape.size() == 1;
  const std::int64_t rows = tensor.shape[0], columns = vector ? 1 : tensor.shape[1];
  const bool wide_rows = rule.heads == Heads::kRotaryRows || rule.heads == Heads::kPlainRows;
  const bool wide_columns = rule.heads == Heads::kPlainColumns;
  const std::int64_t to_rows = wide_rows ? rows / d * kHeadDim : rows;
  const std::int64_t to_columns = wide_columns ? columns / d * kHeadDim : columns;
  PaddedTensor result{.name = name, .shape = {to_rows}, .values = {}};
  if (!vector) result.shape.push_back(to_columns);
  result.values.assign(static_cast<std::size_t>(to_rows * to_columns), 0);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t to_row = r;
    if (rule.heads == Heads::kRotaryRows) to_row = r / d * kHeadDim + rotary_place(r % d, d);
    if (rule.heads == Heads::kPlainRows) to_row = r / d * kHeadDim + r % d;
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t to_column = wide_columns ? c / d * kHeadDim + c % d : c;
      float value = 0;
      std::memcpy(&value, tensor.bytes.data() + (r * columns + c) * sizeof(float), sizeof value);
      result.values[static_cast<std::size_t>(to_row * to_columns + to_column)] =
          static_cast<float>(value * rule.scale);
    }
  }
  return result;
}

/// A file of the padded tensors, in a folder that lives as long as this.
class PaddedCopy {
 public:
  PaddedCopy(const Checkpoint& from, const ModelConfig& config) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tileweave-model-XXXXXX").string();
    require(::mkdtemp(pattern.data()) != nullptr, "pad a model", "a temporary folder");
    folder_ = pattern;
    std::vector<PaddedTensor> all;
    for (const std::string& name : from.names()) {
      all.push_back(padded(name, *from.find(name), config));
    }
    std::vector<TensorToWrite> tensors;
    for (const PaddedTensor& tensor : all) {
      tensors.push_back({.name = tensor.name,
                         .dtype = DType::kF32,
                         .shape = tensor.shape,
                         .bytes = std::as_bytes(std::span(tensor.values))});
    }
    write_safetensors((std::filesystem::path(folder_) / "model.safetensors").string(), tensors);
  }
  PaddedCopy(const PaddedCopy&) = delete;
  PaddedCopy& operator=(const PaddedCopy&) = delete;
  ~PaddedCopy() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace

TinyModel open_padded_model(const std::string& name, std::unique_ptr<Device> device,
                            const DecoderOptions& options) {
  TinyModel model;
  const std::filesystem::path folder = std::filesystem::path(TW_MODEL_DATA) / name;
  const ModelConfig narrow = read_config((folder / "config.json").string());
  model.config = narrow;
  model.config.head_dim = kHeadDim;
  model.generation =
      read_generation_config(find_model_files(folder.string()).generation_config, model.config);
  model.device = std::move(device);
  const PaddedCopy copy(Checkpoint::open(folder.string()), narrow);
  ModelWeights weights = load_weights(*model.device, Checkpoint::open(copy.folder()), model.config,
                                      nullptr, options.granularity);
  std::vector<float> frequencies = rotary_frequencies(narrow);
  frequencies.resize(kHeadDim / 2, 0);
  model.device->upload(weights.inv_freq.address, frequencies.data(),
                       frequencies.size() * sizeof(float));
  model.decoder =
      std::make_unique<Decoder>(*model.device, model.config, std::move(weights), options);
  return model;
}

}  // namespace tileweave

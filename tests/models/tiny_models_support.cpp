#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "tests/models/tiny_models.h"
#include "tileweave/core/error.h"
#include "tileweave/models/checkpoint/model_directory.h"
#include "tileweave/models/json/json_file.h"

namespace tileweave {
namespace {

std::filesystem::path folder_of(const std::string& name) {
  return std::filesystem::path(TW_MODEL_DATA) / name;
}

std::vector<float> floats_of(const Safetensors& file, const std::string& name) {
  const StoredTensor* tensor = file.find(name);
  require(tensor != nullptr, "read golden logits", "a tensor of that name", name);
  std::vector<float> values(tensor->bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

/// A file with every weight rounded to `dtype`, in a folder that lives as long as this.
class RoundedCopy {
 public:
  RoundedCopy(const std::string& name, DType dtype) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tileweave-model-XXXXXX").string();
    require(::mkdtemp(pattern.data()) != nullptr, "round a model", "a temporary folder");
    folder_ = pattern;
    const Checkpoint from = Checkpoint::open(folder_of(name).string());
    std::vector<std::vector<std::uint16_t>> rounded;
    std::vector<TensorToWrite> tensors;
    for (const std::string& tensor_name : from.names()) {
      const StoredTensor& tensor = *from.find(tensor_name);
      std::vector<std::uint16_t>& to = rounded.emplace_back();
      for (std::size_t at = 0; at < tensor.bytes.size(); at += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, tensor.bytes.data() + at, sizeof value);
        to.push_back(dtype == DType::kBF16 ? to_bfloat16(value).bits : to_float16(value).bits);
      }
      tensors.push_back({.name = tensor_name, .dtype = dtype, .shape = tensor.shape, .bytes = {}});
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].bytes = std::as_bytes(std::span(rounded[i]));
    }
    write_safetensors((std::filesystem::path(folder_) / "model.safetensors").string(), tensors);
  }
  RoundedCopy(const RoundedCopy&) = delete;
  RoundedCopy& operator=(const RoundedCopy&) = delete;
  ~RoundedCopy() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace

std::vector<std::string> tiny_model_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TW_MODEL_DATA)) {
    if (std::filesystem::exists(entry.path() / "golden.json")) {
      names.push_back(entry.path().filename().string());
    }
  }
  require(names.size() >= 7, "find the tiny models", "seven of them", std::to_string(names.size()));
  std::sort(names.begin(), names.end());
  return names;
}

Golden read_golden(const std::string& name) {
  Golden golden;
  const JsonFile json = JsonFile::read((folder_of(name) / "golden.json").string());
  golden.ids = json.json().at("ids").get<std::vector<std::int32_t>>();
  for (const nlohmann::json& reply : json.json().at("greedy")) {
    GoldenReply& to = golden.greedy.emplace_back();
    to.prompt = reply.at("prompt").get<std::vector<std::int32_t>>();
    to.ids = reply.at("ids").get<std::vector<std::int32_t>>();
    if (!reply.at("stops_after").is_null()) to.stops_after = reply.at("stops_after");
  }
  const Safetensors logits = Safetensors::open((folder_of(name) / "golden.safetensors").string());
  golden.logits_f32 = floats_of(logits, "logits_f32");
  golden.logits_bf16 = floats_of(logits, "logits_bf16");
  golden.logits_f16 = floats_of(logits, "logits_f16");
  return golden;
}

TinyModel open_tiny_model(const std::string& name, const TinyOptions& options) {
  TinyModel model;
  const std::string folder = folder_of(name).string();
  model.config = read_config((folder_of(name) / "config.json").string());
  model.generation =
      read_generation_config(find_model_files(folder).generation_config, model.config);
  model.device = open_cpu_device(options.device);
  const auto load = [&](const std::string& from) {
    return load_weights(*model.device, Checkpoint::open(from), model.config);
  };
  ModelWeights weights =
      options.dtype == DType::kF32 ? load(folder) : load(RoundedCopy(name, options.dtype).folder());
  model.decoder =
      std::make_unique<Decoder>(*model.device, model.config, std::move(weights), options.decoder);
  return model;
}

std::vector<float> logits_of(Decoder& decoder, std::span<const std::int32_t> ids,
                             std::size_t chunk) {
  const auto sequence = decoder.add_sequence();
  std::vector<float> logits;
  for (std::size_t at = 0; at < ids.size(); at += chunk) {
    const StepResult step =
        decoder.step({.parts = {{sequence, ids.subspan(at, std::min(chunk, ids.size() - at))}},
                      .head = Head::kLogits,
                      .outputs = OutputRows::kEvery});
    logits.insert(logits.end(), step.logits.begin(), step.logits.end());
  }
  decoder.remove_sequence(sequence);
  return logits;
}

double largest_row_error(std::span<const float> a, std::span<const float> b, std::size_t columns) {
  require(a.size() == b.size() && a.size() % columns == 0, "compare logits", "as many rows",
          std::to_string(a.size()) + " and " + std::to_string(b.size()) + " elements");
  double largest = 0;
  for (std::size_t row = 0; row < a.size(); row += columns) {
    double difference = 0, size = 0;
    for (std::size_t j = row; j < row + columns; ++j) {
      const double d = static_cast<double>(a[j]) - static_cast<double>(b[j]);
      difference += d * d;
      size += static_cast<double>(b[j]) * static_cast<double>(b[j]);
    }
    const double error = std::sqrt(difference / size);
    if (!(error <= largest)) largest = error;  // NaN included
    if (std::isnan(error)) return std::numeric_limits<double>::infinity();
  }
  return largest;
}

}  // namespace tileweave

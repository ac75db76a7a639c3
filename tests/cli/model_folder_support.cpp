#include <stdlib.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "tests/cli/model_folder.h"
#include "tileweave/core/error.h"
#include "tileweave/models/checkpoint/config.h"
#include "tileweave/models/checkpoint/expected_tensors.h"
#include "tileweave/models/checkpoint/safetensors.h"
#include "tileweave/models/tokenizer/tokenizer.h"

namespace tileweave::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTemplate =
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

void write_random_weights(const ModelConfig& config, const fs::path& file) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  std::vector<std::vector<std::uint16_t>> values;
  std::vector<TensorToWrite> tensors;
  for (const ExpectedTensor& expected : expected_tensors(config)) {
    std::int64_t count = 1;
    for (const std::int64_t size : expected.shape) count *= size;
    const bool is_norm = expected.shape.size() == 1;
    const float scale =
        is_norm ? 0.1F : 1.5F / std::sqrt(static_cast<float>(expected.shape.back()));
    std::vector<std::uint16_t>& to = values.emplace_back();
    for (std::int64_t i = 0; i < count; ++i) {
      to.push_back(to_bfloat16((is_norm ? 1.0F : 0.0F) + scale * normal(random)).bits);
    }
    tensors.push_back(
        {.name = expected.name, .dtype = DType::kBF16, .shape = expected.shape, .bytes = {}});
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].bytes = std::as_bytes(std::span(values[i]));
  }
  write_safetensors(file.string(), tensors);
}

}  // namespace

ModelFolder::ModelFolder() {
  std::string name = (fs::temp_directory_path() / "tileweave-folder-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw Error("make temporary folder", name);
  folder_ = name;
  const fs::path tokenizer = fs::path(TW_TOKENIZER_DATA) / "smollm2.json";
  fs::copy_file(tokenizer, folder_ / "tokenizer.json");
  const std::int32_t vocabulary = Tokenizer::open(tokenizer.string()).size();
  const nlohmann::json config = {{"architectures", {"LlamaForCausalLM"}},
                                 {"model_type", "llama"},
                                 {"vocab_size", vocabulary},
                                 {"hidden_size", 32},
                                 {"intermediate_size", 48},
                                 {"num_hidden_layers", 2},
                                 {"num_attention_heads", 4},
                                 {"num_key_value_heads", 2},
                                 {"max_position_embeddings", 256},
                                 {"tie_word_embeddings", true},
                                 {"eos_token_id", 2}};
  write("config.json", config.dump(1));
  write("tokenizer_config.json", nlohmann::json{{"chat_template", kTemplate}}.dump(1));
  write_random_weights(read_config((folder_ / "config.json").string()),
                       folder_ / "model.safetensors");
}

ModelFolder::~ModelFolder() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string ModelFolder::read(const std::string& name) const {
  std::ifstream file(folder_ / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void ModelFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ / name, std::ios::binary) << text;
}

void ModelFolder::edit(const std::string& name, const std::string& from,
                       const std::string& to) const {
  std::string text = read(name);
  const std::size_t at = text.find(from);
  require(at != std::string::npos, "edit a test's model", "the text to replace", from);
  write(name, text.replace(at, from.size(), to));
}

}  // namespace tileweave::cli

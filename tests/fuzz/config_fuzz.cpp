// config.json, and the same text taken for generation_config.json.
#include "tests/fuzz/fuzz_input.h"
#include "tileweave/models/checkpoint/config.h"
#include "tileweave/models/checkpoint/expected_tensors.h"

namespace tileweave::fuzz {
namespace {

void check(const ModelConfig& config) {
  demand(config.vocab_size > 0 && config.hidden_size > 0 && config.intermediate_size > 0);
  demand(config.num_layers > 0 && config.num_kv_heads > 0 && config.head_dim > 0);
  demand(config.num_heads % config.num_kv_heads == 0 && config.head_dim % 2 == 0);
  demand(config.max_position_embeddings > 0 && config.rms_norm_eps > 0);
  demand(config.rope.theta >= 1 && config.rope.factor > 0);
  demand(config.rope.type != RopeType::kLlama3 ||
         (config.rope.high_freq_factor > config.rope.low_freq_factor &&
          config.rope.original_max_position_embeddings > 0));
  const std::int64_t count = parameter_count(config);  // must not overflow
  demand(count > config.vocab_size);
  if (config.num_layers > 100) return;  // the list is long
  std::int64_t total = 0;
  for (const ExpectedTensor& tensor : expected_tensors(config)) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= extent;
    total += elements;
  }
  demand(total == count);
}

}  // namespace
}  // namespace tileweave::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tileweave;
  const std::string_view text = fuzz::text_of(data, size);
  ModelConfig config;
  fuzz::may_refuse([&] {
    config = parse_config(JsonFile::parse(text, "config.json"));
    fuzz::check(config);
  });
  fuzz::may_refuse([&] {
    const JsonFile file = JsonFile::parse(text, "generation_config.json");
    const GenerationConfig generation = parse_generation_config(file, config);
    fuzz::demand(generation.temperature >= 0 && generation.top_k >= 0 && generation.top_p > 0);
    fuzz::demand(generation.top_p <= 1 && generation.min_p >= 0 && generation.min_p <= 1);
    fuzz::demand(generation.repetition_penalty > 0);
    for (const std::int64_t id : generation.eos_token_ids) fuzz::demand(id >= 0);
  });
  return 0;
}

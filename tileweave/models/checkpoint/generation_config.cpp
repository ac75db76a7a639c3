#include <limits>

#include "tileweave/models/checkpoint/config.h"
#include "tileweave/models/checkpoint/token_ids.h"

namespace tileweave {
namespace {

constexpr double kMaxNumber = 1e6;

// Numbers just above zero whose reciprocal is still a float.
constexpr double kSmallest = 1e-30;

}  // namespace

GenerationConfig parse_generation_config(const JsonFile& file, const ModelConfig& config) {
  const JsonNode root = file.root();
  GenerationConfig result;
  result.eos_token_ids = read_eos_token_ids(root);
  if (result.eos_token_ids.empty()) result.eos_token_ids = config.eos_token_ids;
  result.bos_token_id = read_bos_token_id(root);
  if (!result.bos_token_id) result.bos_token_id = config.bos_token_id;
  const auto set_number = [&](double& value, const char* key, double low, double high) {
    if (const auto node = root.find(key)) value = node->number(low, high);
  };
  if (const auto node = root.find("do_sample")) result.do_sample = node->boolean();
  if (const auto node = root.find("top_k")) {
    result.top_k = node->integer(0, std::numeric_limits<std::int32_t>::max());
  }
  set_number(result.temperature, "temperature", 0.0, kMaxNumber);
  set_number(result.top_p, "top_p", kSmallest, 1.0);
  set_number(result.min_p, "min_p", 0.0, 1.0);
  set_number(result.repetition_penalty, "repetition_penalty", kSmallest, kMaxNumber);
  return result;
}

GenerationConfig read_generation_config(const std::optional<std::string>& path,
                                        const ModelConfig& config) {
  if (path) return parse_generation_config(JsonFile::read(*path), config);
  return parse_generation_config(JsonFile::parse("{}", "generation_config.json"), config);
}

}  // namespace tileweave

#include "tileweave/models/checkpoint/rope_config.h"

#include <limits>
#include <optional>
#include <string>

namespace tileweave {
namespace {

constexpr double kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e9;
constexpr double kMinFactor = 1e-9;

RopeType rope_type_of(const JsonNode& node) {
  auto type = node.find("rope_type");
  if (!type) type = node.find("type");
  if (!type) {
    if (node.find("factor")) node.refuse("an object with rope_type", "a factor without it");
    return RopeType::kDefault;
  }
  for (const RopeType known : {RopeType::kDefault, RopeType::kLinear, RopeType::kLlama3}) {
    if (type->string() == name_of(known)) return known;
  }
  type->refuse("default, linear or llama3");
}

double factor_of(const JsonNode& node, const char* key) {
  return node.at(key).number(kMinFactor, kMaxFactor);
}

}  // namespace

const char* name_of(RopeType type) {
  switch (type) {
    case RopeType::kDefault:
      return "default";
    case RopeType::kLinear:
      return "linear";
    case RopeType::kLlama3:
      return "llama3";
  }
  return "?";
}

RopeConfig read_rope_config(const JsonNode& root, std::int64_t max_position_embeddings) {
  RopeConfig rope;
  auto parameters = root.find("rope_scaling");
  if (!parameters || parameters->require_object().json().empty()) {
    parameters = root.find("rope_parameters");
  }
  auto theta = root.find("rope_theta");
  if (parameters) {
    if (const auto inner = parameters->find("rope_theta")) theta = inner;
  }
  if (theta) rope.theta = theta->number(1.0, kMaxTheta);
  if (!parameters) return rope;

  const JsonNode& node = *parameters;
  for (const auto& [key, value] : node.json().items()) {
    if (value.is_object()) node.at(key).refuse("a value that holds for all layers");
  }
  if (const auto part = node.find("partial_rotary_factor"); part && part->number(0, 1) != 1) {
    part->refuse("1, as RoPE turns whole heads");
  }
  rope.type = rope_type_of(node);
  if (rope.type == RopeType::kDefault) return rope;
  rope.factor = factor_of(node, "factor");
  if (rope.type == RopeType::kLinear) return rope;
  rope.low_freq_factor = factor_of(node, "low_freq_factor");
  rope.high_freq_factor = factor_of(node, "high_freq_factor");
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    node.at("high_freq_factor")
        .refuse("above low_freq_factor, " + describe(node.at("low_freq_factor").json()));
  }
  rope.original_max_position_embeddings = max_position_embeddings;
  if (const auto original = node.find("original_max_position_embeddings")) {
    rope.original_max_position_embeddings =
        original->integer(1, std::numeric_limits<std::int32_t>::max());
  }
  return rope;
}

}  // namespace tileweave

#include "tileweave/models/plan_cache.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/models/numeric_form.h"

namespace tileweave {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kWhat = "decode_step";
constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;

/// What of a model decides how fast its steps are.
std::string fingerprint(const ModelConfig& c) {
  std::string text = name_of(c.architecture);
  for (const std::int64_t size : {c.num_layers, c.hidden_size, c.intermediate_size, c.num_heads,
                                  c.num_kv_heads, c.head_dim, c.vocab_size}) {
    text += " " + std::to_string(size);
  }
  if (c.tie_word_embeddings) text += " tied";
  if (c.attention_bias) text += " attention-bias";
  if (c.mlp_bias) text += " mlp-bias";
  return text + (c.dtype ? std::string(" ") + name_of(*c.dtype) : "");
}

TuneKey key_of(const Device& device, const PlanQuestion& question, std::int64_t bucket) {
  std::map<std::string, std::string> facts = {{"model", fingerprint(*question.config)},
                                              {"device", device.name()},
                                              {"granularity", name_of(question.granularity)},
                                              {"rows", std::to_string(question.rows)},
                                              {"tokens", std::to_string(bucket)}};
  if (question.wide_products != WideProducts::kOwn && question.rows > kSkinnyMostRows) {
    facts["wide_products"] = name_of(question.wide_products);
  }
  return key_on(device, kWhat, std::move(facts));
}

std::optional<PlanEntry> parse(const std::string& text, const std::string& path) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const Json knobs = json.value("knobs", Json());
  const Json arm = json.value("arm", Json());
  const Json seconds = json.value("seconds_per_step", Json());
  const Json usual = json.value("default_seconds_per_step", Json());
  if (!knobs.is_object() || !arm.is_string() || !seconds.is_number() || !usual.is_number()) {
    return std::nullopt;
  }
  try {
    return PlanEntry{.arm = arm.get<std::string>(),
                     .knobs = parse_knobs(knobs.dump(), path),
                     .seconds_per_step = seconds.get<double>(),
                     .default_seconds_per_step = usual.get<double>()};
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<PlanEntry> find_exact(const Device& device, const PlanQuestion& question,
                                    std::int64_t bucket, TuneCache& cache) {
  const TuneKey key = key_of(device, question, bucket);
  const std::optional<std::string> text = cache.find(key);
  if (!text) return std::nullopt;
  std::optional<PlanEntry> entry = parse(*text, cache.path_of(key));
  if (!entry) cache.refuse(key, "its value is no plan's");
  return entry;
}

/// Buckets from the nearest to the farthest; the larger of two first.
std::vector<std::int64_t> buckets_around(std::int64_t bucket) {
  std::vector<std::int64_t> all = {bucket};
  for (std::int64_t factor = 2; factor <= kMostTokens; factor *= 2) {
    if (bucket * factor <= kMostTokens) all.push_back(bucket * factor);
    if (bucket / factor >= 1) all.push_back(bucket / factor);
  }
  return all;
}

}  // namespace

std::optional<PlanEntry> find_plan(const Device& device, const PlanQuestion& question,
                                   TuneCache& cache) {
  const std::int64_t exact = bucket_of(question.tokens);
  for (const std::int64_t bucket : buckets_around(exact)) {
    std::optional<PlanEntry> entry = find_exact(device, question, bucket, cache);
    if (!entry) continue;
    entry->tokens = bucket;
    if (bucket != exact) {
      entry->knobs.at(StepOp::kAttention).splits = 0;
      entry->knobs.at(StepOp::kAttention).buffers = 0;
    }
    return entry;
  }
  return std::nullopt;
}

std::string keep_plan(const Device& device, const PlanQuestion& question, const PlanEntry& entry,
                      TuneCache& cache) {
  const Json json = {{"arm", entry.arm},
                     {"knobs", Json::parse(to_json(entry.knobs))},
                     {"seconds_per_step", entry.seconds_per_step},
                     {"default_seconds_per_step", entry.default_seconds_per_step}};
  return cache.keep(key_of(device, question, bucket_of(question.tokens)), json.dump());
}

void refuse_plan(const Device& device, const PlanQuestion& question, const std::string& why,
                 TuneCache& cache) {
  cache.refuse(key_of(device, question, bucket_of(question.tokens)), why);
}

ChosenKnobs choose_knobs(const Device& device, const PlanQuestion& question, const StepShape& shape,
                         TuneCache* cache) {
  if (cache != nullptr && shape.decode) {
    const std::optional<PlanEntry> entry = find_plan(device, question, *cache);
    if (entry) return {entry->knobs, KnobsSource::kCached, entry->tokens};
  }
  return {usual_knobs(device, *question.config, shape), KnobsSource::kDefault};
}

StepKnobs usual_knobs(const Device& device, const ModelConfig& config, const StepShape& shape) {
  if (numeric_form(device.name()).data_tiles == DataTiles::kFine) return {};
  return default_knobs(config, shape.rows, device.limits());
}

}  // namespace tileweave

#include "tileweave/tune/tune_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace tileweave {
namespace {

using Json = nlohmann::ordered_json;

TuneKey key_of(const Device& device, const TuneTask& task) {
  return key_on(device, task.op, {{"shapes", task.shapes}, {"dtypes", task.dtypes}});
}

std::string to_json(const TunedConfig& tuned) {
  Json knobs = Json::object();
  for (const auto& [name, value] : tuned.values) knobs[name] = value;
  return Json{
      {"knobs", knobs}, {"seconds", tuned.seconds}, {"default_seconds", tuned.default_seconds}}
      .dump();
}

bool has_value(const TuneTask& task, const std::string& name, const Json& value) {
  return value.is_number_integer() &&
         std::any_of(task.knobs.begin(), task.knobs.end(), [&](const TuneKnob& knob) {
           return knob.name == name && std::find(knob.values.begin(), knob.values.end(),
                                                 value.get<std::int64_t>()) != knob.values.end();
         });
}

/// Nothing for what we would not have written.
std::optional<TunedConfig> parse(const std::string& text, const TuneTask& task) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const Json knobs = json.value("knobs", Json());
  const Json seconds = json.value("seconds", Json());
  const Json default_seconds = json.value("default_seconds", Json());
  if (!knobs.is_object() || !seconds.is_number() || !default_seconds.is_number()) {
    return std::nullopt;
  }
  TunedConfig tuned{.values = {},
                    .seconds = seconds.get<double>(),
                    .default_seconds = default_seconds.get<double>(),
                    .source = TuneSource::kCached};
  for (const auto& [name, value] : knobs.items()) {
    if (!has_value(task, name, value)) return std::nullopt;
    tuned.values[name] = value.get<std::int64_t>();
  }
  return tuned;
}

std::optional<TunedConfig> find(const TuneKey& key, const TuneTask& task, TuneCache& cache) {
  const std::optional<std::string> text = cache.find(key);
  if (!text) return std::nullopt;
  std::optional<TunedConfig> tuned = parse(*text, task);
  if (!tuned) cache.refuse(key, "its value is none for this kernel");
  return tuned;
}

}  // namespace

std::int64_t TunedConfig::value(const std::string& knob) const {
  const auto at = values.find(knob);
  return at == values.end() ? 0 : at->second;
}

TunedConfig tune_config(const Device& device, const TuneTask& task, TuneCache& cache,
                        TuneLookup lookup, const SearchOptions& options) {
  const TuneKey key = key_of(device, task);
  if (lookup != TuneLookup::kNever) {
    if (const std::optional<TunedConfig> tuned = find(key, task, cache)) return *tuned;
    if (lookup == TuneLookup::kOnly) return {};
  }
  const SearchResult found = search(task.knobs, task.prepare, options);
  TunedConfig tuned{.values = {},
                    .seconds = found.seconds,
                    .default_seconds = found.default_seconds,
                    .source = TuneSource::kMeasured,
                    .refused = found.refused};
  for (std::size_t i = 0; i < task.knobs.size(); ++i) {
    if (found.best[i] == task.knobs[i].values[0]) continue;
    tuned.values[task.knobs[i].name] = found.best[i];
  }
  cache.keep(key, to_json(tuned));
  return tuned;
}

}  // namespace tileweave

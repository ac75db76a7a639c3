#include "tileweave/tune/tune_cache.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tileweave/core/cache_file.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "tileweave tuned";
constexpr int kFormatVersion = 1;
constexpr const char* kFolder = "tuned";

/// Bytes that are not UTF-8 (of a device's name, say) become U+FFFD.
std::string text_of(const Json& json) {
  return json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

/// As it reads after it was stored.
Json facts_json(const TuneKey& key) {
  return Json::parse(text_of(Json(key.facts)));
}

/// FNV-1a: names files alone; what they are about is compared in full.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace

TuneKey key_on(const Device& device, std::string what, std::map<std::string, std::string> facts) {
  facts["gpu"] = device.limits().name;
  facts["sms"] = std::to_string(device.limits().num_sms);
  facts["driver"] = device.driver();
  facts["version"] = TW_VERSION;
  return {.what = std::move(what), .facts = std::move(facts)};
}

TuneCache::TuneCache(std::string folder, Note note)
    : folder_(std::move(folder)), note_(std::move(note)) {}

std::int64_t TuneCache::count() const {
  std::int64_t count = 0;
  std::error_code error;
  std::filesystem::directory_iterator at(std::filesystem::path(folder_) / kFolder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    if (at->path().extension() == ".json") ++count;
  }
  return count;
}

std::string TuneCache::path_of(const TuneKey& key) const {
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016llx",
                static_cast<unsigned long long>(hash_of(facts_json(key).dump())));
  return (std::filesystem::path(folder_) / kFolder / (key.what + "-" + hash + ".json")).string();
}

std::optional<std::string> TuneCache::find(const TuneKey& key) {
  if (folder_.empty()) return std::nullopt;
  const std::string path = path_of(key);
  const std::optional<std::string> text = read_cache_file(path);
  if (!text) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) refuse(key, "it cannot be read");
    return std::nullopt;
  }
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("format", Json()) != kFormat ||
      json.value("format_version", Json()) != kFormatVersion || !json.contains("value")) {
    refuse(key, "it is damaged or of another program");
    return std::nullopt;
  }
  if (json.value("what", Json()) != key.what || json.value("facts", Json()) != facts_json(key)) {
    refuse(key, "it is about something else");
    return std::nullopt;
  }
  return json.at("value").dump();
}

std::string TuneCache::store(const TuneKey& key, const std::string& json) {
  if (folder_.empty()) return {};
  std::string path = path_of(key);
  const Json value = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) throw Error("store " + path, "a value in JSON", json);
  write_cache_file(path, text_of({{"format", kFormat},
                                  {"format_version", kFormatVersion},
                                  {"what", key.what},
                                  {"facts", key.facts},
                                  {"value", value}}) +
                             "\n");
  noted_.erase(path);
  return path;
}

std::string TuneCache::keep(const TuneKey& key, const std::string& json) {
  try {
    return store(key, json);
  } catch (const Error& error) {
    note_once(path_of(key), std::string("what was tuned is not kept; ") + error.what());
    return {};
  }
}

void TuneCache::refuse(const TuneKey& key, const std::string& why) {
  const std::string path = path_of(key);
  note_once(path, "what was tuned is not taken from " + path + ": " + why);
}

void TuneCache::note_once(const std::string& path, const std::string& sentence) {
  if (noted_.insert(path).second && note_) note_(sentence);
}

}  // namespace tileweave

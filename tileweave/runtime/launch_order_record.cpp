#include "tileweave/runtime/launch_order_record.h"

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "tileweave/core/cache_file.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kFormat = "tileweave launch order";
constexpr int kFormatVersion = 1;
constexpr const char* kFileName = "launch_order.json";

std::optional<std::int64_t> count_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number_unsigned()) return std::nullopt;
  const auto value = at->get<std::uint64_t>();
  if (value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<LaunchOrderCount> counts_of(const Json& record, const char* key) {
  const auto at = record.find(key);
  if (at == record.end() || !at->is_object()) return std::nullopt;
  const auto launches = count_of(*at, "launches");
  const auto inversions = count_of(*at, "inversions");
  if (!launches || !inversions) return std::nullopt;
  return LaunchOrderCount{*launches, *inversions};
}

std::optional<LaunchOrderRecord> record_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto gpu = json.find("gpu");
  const auto driver = json.find("driver");
  if (gpu == json.end() || !gpu->is_string()) return std::nullopt;
  if (driver == json.end() || !driver->is_string()) return std::nullopt;
  const auto equal = counts_of(json, "equal");
  const auto unequal = counts_of(json, "unequal");
  if (!equal || !unequal) return std::nullopt;
  return LaunchOrderRecord{gpu->get<std::string>(), driver->get<std::string>(), *equal, *unequal};
}

Json to_json(const LaunchOrderCount& count) {
  return {{"launches", count.launches}, {"inversions", count.inversions}};
}

/// Empty for a file that is not ours or says anything that we would not have written: one damaged
/// record makes the others doubtful, too.
std::vector<LaunchOrderRecord> read_records(const std::string& path) {
  const std::optional<std::string> text = read_cache_file(path);
  if (!text) return {};
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("format", Json()) != kFormat ||
      json.value("version", Json()) != kFormatVersion) {
    return {};
  }
  const auto list = json.find("records");
  if (list == json.end() || !list->is_array()) return {};
  std::vector<LaunchOrderRecord> records;
  for (const Json& entry : *list) {
    std::optional<LaunchOrderRecord> record = record_of(entry);
    if (!record) return {};
    records.push_back(*std::move(record));
  }
  return records;
}

bool is_clean(const LaunchOrderCount& count) {
  return count.inversions == 0 && count.launches >= kLaunchesToTrust;
}

}  // namespace

LaunchOrder launch_order_of(const LaunchOrderRecord& record) {
  return is_clean(record.equal) && is_clean(record.unequal) ? LaunchOrder::kTrusted
                                                            : LaunchOrder::kNotTrusted;
}

std::string launch_order_path(const std::string& folder) {
  const std::string found = cache_folder(folder);
  return found.empty() ? found : (fs::path(found) / kFileName).string();
}

void store_launch_order(const LaunchOrderRecord& record, const std::string& path) {
  const std::string operation = "store the launch order in " + path;
  if (path.empty()) {
    throw Error("store the launch order",
                "a folder for it, or XDG_CACHE_HOME or HOME naming an absolute one");
  }
  if (record.gpu.empty() || record.driver.empty()) {
    throw Error(operation, "the names of the GPU and of its driver", "an empty one");
  }
  Json list = Json::array();
  const auto append = [&list](const LaunchOrderRecord& r) {
    list.push_back({{"gpu", r.gpu},
                    {"driver", r.driver},
                    {"equal", to_json(r.equal)},
                    {"unequal", to_json(r.unequal)}});
  };
  for (const LaunchOrderRecord& other : read_records(path)) {
    if (other.gpu != record.gpu || other.driver != record.driver) append(other);
  }
  append(record);
  const Json json = {{"format", kFormat}, {"version", kFormatVersion}, {"records", list}};
  std::string text;
  try {
    text = json.dump(2) + "\n";
  } catch (const Json::exception&) {
    throw Error(operation, "UTF-8 names of the GPU and of its driver", "other bytes");
  }
  write_cache_file(path, text);
}

LaunchOrder stored_launch_order(const std::string& gpu, const std::string& driver,
                                const std::string& path) noexcept {
  try {
    LaunchOrder order = LaunchOrder::kNotTrusted;
    for (const LaunchOrderRecord& record : read_records(path)) {
      if (record.gpu != gpu || record.driver != driver) continue;
      order = launch_order_of(record);
      // Storing keeps one record a pair; should there be two, both must say so.
      if (order == LaunchOrder::kNotTrusted) return order;
    }
    return order;
  } catch (...) {  // out of memory, say: then there is no finding
    return LaunchOrder::kNotTrusted;
  }
}

}  // namespace tileweave

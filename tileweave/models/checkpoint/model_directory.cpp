#include "tileweave/models/checkpoint/model_directory.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "tileweave/core/error.h"
#include "tileweave/core/file_map.h"
#include "tileweave/core/format.h"

namespace tileweave {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_name_part(std::string_view part) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !part.empty() && part[0] != '.' && part.find("..") == std::string_view::npos &&
         std::all_of(part.begin(), part.end(), is_allowed);
}

// "models--org--name" for "org/name"; nothing when `model` is not such a name.
std::optional<std::string> cache_folder_of(std::string_view model) {
  const std::size_t slash = model.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view org = model.substr(0, slash), name = model.substr(slash + 1);
  if (!is_name_part(org) || !is_name_part(name)) return std::nullopt;
  return "models--" + std::string(org) + "--" + std::string(name);
}

std::string with_home(const std::string& path, const std::string& home) {
  return path.starts_with("~/") && !home.empty() ? home + path.substr(1) : path;
}

}  // namespace

HubEnvironment HubEnvironment::of_process() {
  const auto value_of = [](const char* name) -> std::string {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets any
    return value == nullptr ? "" : value;
  };
  return {.hf_hub_cache = value_of("HF_HUB_CACHE"),
          .hf_home = value_of("HF_HOME"),
          .xdg_cache_home = value_of("XDG_CACHE_HOME"),
          .home = value_of("HOME")};
}

std::string HubEnvironment::cache() const {
  if (!hf_hub_cache.empty()) return with_home(hf_hub_cache, home);
  if (!hf_home.empty()) return with_home(hf_home, home) + "/hub";
  if (!xdg_cache_home.empty()) return with_home(xdg_cache_home, home) + "/huggingface/hub";
  if (!home.empty()) return home + "/.cache/huggingface/hub";
  throw Error("find the cache of models", "HF_HUB_CACHE, HF_HOME or HOME to be set",
              "none of them");
}

std::string resolve_model(const std::string& model) {
  return resolve_model(model, HubEnvironment::of_process());
}

std::string resolve_model(const std::string& model, const HubEnvironment& environment) {
  const std::string operation = "find model " + in_quotes(model);
  if (is_folder(model)) return model;
  std::error_code ignored;
  if (fs::exists(model, ignored)) {
    throw Error(operation, "a directory with config.json and weights", "a file");
  }
  const std::optional<std::string> folder = cache_folder_of(model);
  if (!folder) throw Error(operation, "a directory, or a name of the form org/name", "neither");

  const fs::path cached = fs::path(environment.cache()) / *folder;
  if (!is_folder(cached)) {
    throw Error(operation, "a directory of that name, or " + cached.string(), "neither");
  }
  const fs::path reference = cached / "refs" / "main";
  std::string hash(FileMap::open(reference.string()).text().substr(0, 200));
  while (!hash.empty() && (hash.back() == '\n' || hash.back() == '\r' || hash.back() == ' ')) {
    hash.pop_back();
  }
  if (!is_name_part(hash)) {
    throw Error(operation, "the name of a snapshot in " + reference.string(), in_quotes(hash));
  }
  const fs::path snapshot = cached / "snapshots" / hash;
  if (!is_folder(snapshot)) {
    throw Error(operation, "the snapshot that refs/main names, " + snapshot.string(),
                "no such directory (an interrupted download?)");
  }
  return snapshot.string();
}

ModelFiles find_model_files(const std::string& directory) {
  if (!is_folder(directory)) throw Error("open model " + directory, "a directory", "none");
  const auto path_of = [&](const char* name) -> std::optional<std::string> {
    const fs::path path = fs::path(directory) / name;
    std::error_code ignored;
    // A link that points nowhere counts as there, so that opening it names it.
    if (!fs::exists(fs::symlink_status(path, ignored))) return std::nullopt;
    return path.string();
  };
  return {.config = path_of("config.json"),
          .generation_config = path_of("generation_config.json"),
          .tokenizer = path_of("tokenizer.json"),
          .tokenizer_config = path_of("tokenizer_config.json"),
          .chat_template = path_of("chat_template.jinja")};
}

}  // namespace tileweave

// From what a user calls a model to the directory that holds it.
//
// A model is a directory, or the name "org/name" of one that Hugging Face's tools have left in
// their cache: CACHE/models--org--name/refs/main names the snapshot, snapshots/HASH is the
// directory (its files are links to blobs). CACHE is $HF_HUB_CACHE, else $HF_HOME/hub, else
// $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. Nothing is downloaded. This is
// the only place of the library that reads environment variables. Throws Error that names what was
// tried.
#pragma once

#include <optional>
#include <string>

namespace tileweave {

struct HubEnvironment {
  std::string hf_hub_cache{};  // an empty string stands for an unset variable
  std::string hf_home{};
  std::string xdg_cache_home{};
  std::string home{};

  static HubEnvironment of_process();
  /// Where models are kept; throws Error when not even a home directory is known.
  std::string cache() const;
};

std::string resolve_model(const std::string& model);
std::string resolve_model(const std::string& model, const HubEnvironment& environment);

/// Paths of the files that a model directory may hold beside its weights.
struct ModelFiles {
  std::optional<std::string> config;             // config.json
  std::optional<std::string> generation_config;  // generation_config.json
  std::optional<std::string> tokenizer;          // tokenizer.json
  std::optional<std::string> tokenizer_config;   // tokenizer_config.json
  std::optional<std::string> chat_template;      // chat_template.jinja
};

ModelFiles find_model_files(const std::string& directory);

}  // namespace tileweave

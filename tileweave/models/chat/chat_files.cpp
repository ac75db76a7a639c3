// Chat templates and special tokens out of a model directory.
#include <filesystem>
#include <fstream>

#include "tileweave/core/error.h"
#include "tileweave/models/chat/chat_template.h"
#include "tileweave/models/json/json_file.h"

namespace tileweave {
namespace {

constexpr std::uintmax_t kMaxTemplateBytes = 16 << 20;

std::string read_template(const std::filesystem::path& path) {
  const std::string operation = "read " + path.string();
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw Error(operation, "a file that can be read", error.message());
  if (size > kMaxTemplateBytes) {
    throw Error(operation, "a chat template of at most 16 MiB", std::to_string(size) + " bytes");
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    throw Error(operation, "a file that can be read");
  }
  if (text.starts_with("version https://git-lfs")) {
    throw Error(operation, "a chat template", "a Git LFS pointer: fetch the file itself");
  }
  return text;
}

std::string token_of(const JsonNode& config, const char* name) {
  const std::optional<JsonNode> token = config.find(name);
  if (!token) return "";
  if (token->is_string()) return token->string();
  if (token->is_object()) return token->at("content").string();
  token->refuse("a string or an object with a string 'content'");
}

// The text of `chat_template`: a string, or the one named "default" of a list.
std::string template_of(const JsonNode& value) {
  if (value.is_string()) return value.string();
  if (!value.is_array()) value.refuse("a string or a list of named templates");
  std::string names;
  for (std::size_t i = 0; i < value.length(); ++i) {
    const JsonNode entry = value.element(i);
    const std::string& name = entry.at("name").string();
    if (name == "default") return entry.at("template").string();
    names += (names.empty() ? "'" : ", '") + name + "'";
  }
  value.refuse("a list with a template named 'default'", names.empty() ? "no template" : names);
}

}  // namespace

ChatTemplate open_chat_template(const std::string& directory) {
  const std::filesystem::path folder(directory);
  const std::filesystem::path own = folder / "chat_template.jinja";
  const std::filesystem::path config = folder / "tokenizer_config.json";
  std::error_code error;
  if (std::filesystem::exists(own, error)) {
    return ChatTemplate::parse(read_template(own), own.string());
  }
  if (std::filesystem::exists(config, error)) {
    const JsonFile file = JsonFile::read(config.string());
    if (const auto value = file.root().require_object().find("chat_template")) {
      return ChatTemplate::parse(template_of(*value), config.string());
    }
  }
  throw Error("open the chat template of " + directory,
              "a file chat_template.jinja, or chat_template in tokenizer_config.json", "neither");
}

ChatTokens open_chat_tokens(const std::string& directory) {
  const std::filesystem::path path = std::filesystem::path(directory) / "tokenizer_config.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  const JsonFile file = JsonFile::read(path.string());
  const JsonNode config = file.root();
  config.require_object();
  return {.bos_token = token_of(config, "bos_token"), .eos_token = token_of(config, "eos_token")};
}

}  // namespace tileweave

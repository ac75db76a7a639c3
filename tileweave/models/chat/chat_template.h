// Chat templates: from a conversation to the prompt text that a model was trained on.
//
// A template is the Jinja text of `chat_template.jinja` or `tokenizer_config.json`; it is parsed
// once and rendered any number of times (`render` is const and may be called from several threads).
// The result equals that of Hugging Face transformers' apply_chat_template; what the subset lacks
// is refused by `parse`, in a sentence naming the template, the line and the construct. Rendering
// is bounded (ChatLimits). Errors: tileweave::Error, raise_exception's text included.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace tileweave {

struct ChatMessage {
  std::string role;     // "system", "user", "assistant", "tool"
  std::string content;  // UTF-8
};

enum class GenerationPrompt { kAdd, kNone };

/// Bounds of one rendering; a template beyond them is refused in a sentence, it never hangs.
struct ChatLimits {
  std::uint64_t work = 2'000'000'000;    // about one per byte handled, 16 per step
  std::size_t output_bytes = 256 << 20;  // of the rendered text
};

struct ChatOptions {
  GenerationPrompt generation_prompt = GenerationPrompt::kAdd;
  std::string bos_token = {};  // empty: the variable is undefined, as for a tokenizer without one
  std::string eos_token = {};
  /// A JSON object of further variables: {"enable_thinking": false, "tools": [...]}. They win over
  /// the variables above. Empty: none.
  std::string variables_json = {};
  /// The wall clock that strftime_now reads. None: this machine's clock in its time zone.
  std::optional<std::chrono::local_seconds> now = {};
  ChatLimits limits = {};
};

class ChatTemplate {
 public:
  /// `name` is what errors call the template: a file, usually.
  static ChatTemplate parse(const std::string& source, const std::string& name);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  std::string render(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;

  /// `messages_json` is an array of message objects with any keys: tool_calls, tool_call_id,
  /// reasoning_content, content as a list of parts. As in transformers, keys whose value is null
  /// are dropped and `reasoning`, `thinking` and `reasoning_content` stand for each other.
  std::string render_json(const std::string& messages_json, const ChatOptions& options = {}) const;

  const std::string& name() const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::unique_ptr<const Parsed> parsed);
  std::unique_ptr<const Parsed> parsed_;
};

/// The template of a model directory: chat_template.jinja, else `chat_template` of
/// tokenizer_config.json (a string, or a list of {name, template} of which "default" is taken).
ChatTemplate open_chat_template(const std::string& directory);

struct ChatTokens {
  std::string bos_token;  // empty: none
  std::string eos_token = {};
};

/// bos_token and eos_token of a model directory's tokenizer_config.json, strings or {content: ...}
/// objects. Both empty when there is no such file.
ChatTokens open_chat_tokens(const std::string& directory);

}  // namespace tileweave

#include "tileweave/models/chat/chat_template.h"

#include <ctime>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/models/chat/jinja_parser.h"
#include "tileweave/models/chat/jinja_print.h"
#include "tileweave/models/chat/jinja_renderer.h"
#include "tileweave/models/chat/jinja_text.h"

namespace tileweave {

using jinja::Budget;
using jinja::Dict;
using jinja::DictBuilder;
using jinja::Fault;
using jinja::Sequence;
using jinja::SequenceKind;
using jinja::Value;
using jinja::Values;

struct ChatTemplate::Parsed {
  std::string name;
  jinja::Body body;
};

namespace {

// Faults quote names and texts of the template: on one line, and not whole books.
std::string one_line(std::string_view text) {
  static constexpr std::size_t kMaxBytes = 2000;
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    if (line.size() > kMaxBytes) return line + "...";
    const std::size_t start = at;
    const char32_t code = jinja::next_code_point(text, at);
    if (code == '\n') {
      line += "\\n";
    } else if (code < 0x20 || code == 0x7f) {
      line += ' ';
    } else {
      line += text.substr(start, at - start);
    }
  }
  return line;
}

Error error_at(const std::string& operation, int line, const Fault& fault) {
  return {operation, "line " + std::to_string(line) + ": " + one_line(fault.expected),
          one_line(fault.got)};
}

std::chrono::local_seconds local_clock() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  localtime_r(&now, &local);
  return std::chrono::local_seconds(std::chrono::seconds(now + local.tm_gmtoff));
}

void require_utf8(const std::string& text, const std::string& what) {
  const std::size_t at = valid_utf8_prefix(text);
  if (at != text.size()) {
    jinja::fail(what + " is UTF-8", "another byte at offset " + std::to_string(at));
  }
}

Value message_value(Budget& budget, const ChatMessage& message, std::size_t i) {
  const std::string what = "message " + std::to_string(i);
  require_utf8(message.role, "the role of " + what);
  require_utf8(message.content, "the content of " + what);
  DictBuilder builder(budget);
  builder.set(Value::text("role"), Value::text(message.role));
  builder.set(Value::text("content"), Value::text(message.content));
  return builder.finish();
}

// What transformers does to a message before a template sees it.
Value normalized_message(Budget& budget, const Value& message, std::size_t i) {
  if (!message.is<std::shared_ptr<const Dict>>()) {
    jinja::fail("message " + std::to_string(i) + " is an object", "a " + jinja::type_name(message));
  }
  const Dict& dict = *message.as<std::shared_ptr<const Dict>>();
  const Value* reasoning = nullptr;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const Value* found = jinja::find(dict, name);
    if (reasoning == nullptr && found != nullptr && !found->is_none()) reasoning = found;
  }
  DictBuilder builder(budget);
  if (reasoning != nullptr) builder.set(Value::text("thinking"), *reasoning);
  for (const auto& [key, value] : dict.items) {
    if (!value.is_none()) builder.set(key, value);
  }
  if (reasoning != nullptr) builder.set(Value::text("reasoning_content"), *reasoning);
  return builder.finish();
}

Value messages_value(Budget& budget, const std::string& json) {
  const Value parsed = jinja::from_json(budget, json, "the JSON text of the messages");
  if (!parsed.is<std::shared_ptr<Sequence>>()) {
    jinja::fail("the messages are a JSON array", "a " + jinja::type_name(parsed));
  }
  Values messages;
  for (const Value& message : parsed.as<std::shared_ptr<Sequence>>()->items) {
    messages.push_back(normalized_message(budget, message, messages.size()));
  }
  return jinja::make_sequence(budget, SequenceKind::kList, std::move(messages));
}

Value all_variables(Budget& budget, const Value& messages, const ChatOptions& options) {
  if (jinja::length_of(messages) == 0) jinja::fail("a conversation of at least one message");
  DictBuilder builder(budget);
  const auto set = [&](const char* name, Value value) {
    builder.set(Value::text(name), std::move(value));
  };
  set("messages", messages);
  set("tools", Value::none());
  set("documents", Value::none());
  set("add_generation_prompt", options.generation_prompt == GenerationPrompt::kAdd);
  require_utf8(options.bos_token, "bos_token");
  require_utf8(options.eos_token, "eos_token");
  if (!options.bos_token.empty()) set("bos_token", Value::text(options.bos_token));
  if (!options.eos_token.empty()) set("eos_token", Value::text(options.eos_token));
  if (!options.variables_json.empty()) {
    const Value more = jinja::from_json(budget, options.variables_json, "variables_json");
    if (!more.is<std::shared_ptr<const Dict>>()) {
      jinja::fail("variables_json is a JSON object", "a " + jinja::type_name(more));
    }
    for (const auto& [key, value] : more.as<std::shared_ptr<const Dict>>()->items) {
      builder.set(key, value);
    }
  }
  return builder.finish();
}

template <class MakeMessages>
std::string render_template(const std::string& name, const jinja::Body& body,
                            const ChatOptions& options, const MakeMessages& make_messages) {
  const std::string operation = "render chat template '" + name + "'";
  Value variables;
  try {
    Budget budget(options.limits.work);
    const Value messages = make_messages(budget);
    variables = all_variables(budget, messages, options);
  } catch (const Fault& fault) {
    throw Error(operation, one_line(fault.expected), one_line(fault.got));
  }
  jinja::Renderer renderer({.work = options.limits.work,
                            .output_bytes = options.limits.output_bytes,
                            .now = options.now ? *options.now : local_clock()},
                           *variables.as<std::shared_ptr<const Dict>>());
  try {
    return renderer.render(body);
  } catch (const Fault& fault) {
    throw error_at(operation, renderer.line(), fault);
  }
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

ChatTemplate ChatTemplate::parse(const std::string& source, const std::string& name) {
  const std::string operation = "parse chat template '" + name + "'";
  const std::size_t num_valid = valid_utf8_prefix(source);
  if (num_valid != source.size()) {
    throw Error(operation, "UTF-8 text", "another byte at offset " + std::to_string(num_valid));
  }
  try {
    auto parsed = std::make_unique<Parsed>();
    parsed->name = name;
    parsed->body = jinja::parse_template(source);
    return ChatTemplate(std::move(parsed));
  } catch (const jinja::SourceFault& found) {
    throw error_at(operation, found.line, found.fault);
  }
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages,
                                 const ChatOptions& options) const {
  return render_template(parsed_->name, parsed_->body, options, [&](Budget& budget) {
    Values values;
    for (const ChatMessage& message : messages) {
      values.push_back(message_value(budget, message, values.size()));
    }
    return jinja::make_sequence(budget, SequenceKind::kList, std::move(values));
  });
}

std::string ChatTemplate::render_json(const std::string& messages_json,
                                      const ChatOptions& options) const {
  return render_template(parsed_->name, parsed_->body, options,
                         [&](Budget& budget) { return messages_value(budget, messages_json); });
}

const std::string& ChatTemplate::name() const {
  return parsed_->name;
}

}  // namespace tileweave

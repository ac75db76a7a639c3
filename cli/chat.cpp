#include "cli/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "cli/command_line.h"
#include "cli/generate.h"
#include "cli/interrupt.h"
#include "cli/open_model.h"
#include "cli/output_form.h"
#include "tileweave/core/error.h"
#include "tileweave/models/chat/chat_template.h"
#include "tileweave/models/generator.h"

namespace tileweave::cli {
namespace {

constexpr std::int64_t kUsualContext = 4096;

/// A conversation and what of it the model has computed.
class Conversation {
 public:
  Conversation(const ChatVerbOptions& options, LoadedModel& model)
      : options_(options),
        model_(model),
        tokenizer_(open_tokenizer(model.description.directory)),
        template_(open_chat_template(model.description.directory)),
        words_(chat_options(model.description.directory)),
        sequence_(model.decoder->add_sequence()) {
    if (!options.system.empty()) messages_.push_back({"system", options.system});
  }

  /// Streams the reply to one message.
  void reply_to(const std::string& message, std::ostream& out, std::ostream& err) {
    messages_.push_back({"user", message});
    try {
      messages_.push_back({"assistant", reply(out, err)});
    } catch (...) {
      messages_.pop_back();  // the conversation is as it was
      throw;
    }
  }

 private:
  std::string reply(std::ostream& out, std::ostream& err) {
    std::vector<std::int32_t> ids =
        tokenizer_.encode(template_.render(messages_, words_), SpecialTokens::kNone);
    Decoder& decoder = *model_.decoder;
    const auto limit = static_cast<std::size_t>(decoder.options().max_tokens);
    if (ids.size() >= limit) {
      throw Error("reply", fmt::format("a conversation of fewer than {} tokens (--context)", limit),
                  fmt::format("{}", ids.size()));
    }
    const std::int64_t kept = common_prefix(ids);
    decoder.truncate(sequence_, kept);
    held_.resize(static_cast<std::size_t>(kept));  // also should the reply fail half-way
    TextStream text(tokenizer_, DecodeSpecial::kSkip);
    std::string said;
    const auto say = [&](const std::string& part) {
      said += part;
      out << part;
      flush_output(out);
    };
    const CaughtInterrupt interrupt;
    const auto go_on = [&] { return interrupt.happened() ? Continue::kStop : Continue::kGoOn; };
    const Generated generated = generate(
        decoder,
        {{.ids = ids,
          .sequence = sequence_,
          .max_new_tokens = options_.max_new_tokens,
          .sampling = options_.sampling,
          .stop_ids = eos_ids(model_.description)}},
        [&](std::size_t /*request*/, std::int32_t id) {
          say(text.push(id));
          return go_on();
        },
        go_on);
    say(text.finish());
    out << "\n";
    flush_output(out);
    const GenerateResult& result = generated.results[0];
    held_ = std::move(ids);
    held_.insert(held_.end(), result.ids.begin(), result.ids.end());
    err << fmt::format("[{}{}]\n", times_text(generated.times),
                       result.finish == Finish::kContextFull ? ", the context is full"
                       : interrupt.happened()                ? ", interrupted"
                                                             : "");
    return said;
  }

  /// Tokens that the cache holds and the new prompt begins with; at least one is left to compute.
  std::int64_t common_prefix(const std::vector<std::int32_t>& ids) const {
    const auto held = static_cast<std::size_t>(model_.decoder->length(sequence_));
    const std::size_t most = std::min({held, held_.size(), ids.size() - 1});
    std::size_t same = 0;
    while (same < most && ids[same] == held_[same]) ++same;
    return static_cast<std::int64_t>(same);
  }

  const ChatVerbOptions& options_;
  LoadedModel& model_;
  Tokenizer tokenizer_;
  ChatTemplate template_;
  ChatOptions words_;
  KvCache::SequenceId sequence_;
  std::vector<std::int32_t> held_;  // ids of the sequence, as far as the cache holds them
  std::vector<ChatMessage> messages_;
};

}  // namespace

int chat(const ChatVerbOptions& options, std::istream& in, std::ostream& out, std::ostream& err) {
  const ModelDescription description = read_description(options.choice.model);
  const std::int64_t most = description.config.max_position_embeddings;
  const std::int64_t context =
      options.context == 0 ? std::min(kUsualContext, most) : options.context;
  LoadedModel model = load_model(options.choice, description, {.max_tokens = context}, err);
  Conversation conversation(options, model);
  const bool prompts = ::isatty(STDIN_FILENO) != 0;
  if (prompts) {
    err << fmt::format(
        "{} on {}, {} knobs; an empty line or Ctrl-D ends the conversation, Ctrl-C a reply\n",
        description.directory, model.device->name(),
        name_of(model.decoder->knobs_of(decode_shape(1)).source));
  }
  std::string line;
  bool replied = false;
  while (true) {
    if (prompts) err << "> " << std::flush;
    if (!std::getline(in, line)) break;
    if (line.ends_with('\r')) line.pop_back();  // a file with line breaks of Windows
    if (line.empty()) break;
    try {
      conversation.reply_to(line, out, err);
      replied = true;
    } catch (const Error& error) {
      if (!prompts) throw;
      err << "tileweave chat: " << error.what() << "\n";
    }
  }
  if (!prompts && !replied) throw Error("chat", "a message on standard input", "none");
  return kSuccess;
}

}  // namespace tileweave::cli

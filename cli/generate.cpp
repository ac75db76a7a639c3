#include "cli/generate.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/open_model.h"
#include "cli/trace_files.h"
#include "tileweave/core/error.h"
#include "tileweave/models/chat/chat_template.h"
#include "tileweave/models/generator.h"

namespace tileweave::cli {
namespace {

std::string chat_prompt(const GenerateOptions& options, const std::string& directory,
                        const std::string& prompt) {
  std::vector<ChatMessage> messages;
  if (!options.system.empty()) messages.push_back({"system", options.system});
  messages.push_back({"user", prompt});
  return open_chat_template(directory).render(messages, chat_options(directory));
}

std::vector<GenerateRequest> requests_of(const GenerateOptions& options,
                                         const ModelDescription& model,
                                         const std::optional<Tokenizer>& tokenizer) {
  std::vector<GenerateRequest> requests;
  const auto add = [&](std::vector<std::int32_t> ids) {
    GenerateRequest request{.ids = std::move(ids),
                            .max_new_tokens = options.max_new_tokens,
                            .sampling = options.sampling};
    if (options.eos == StopAtEos::kYes) request.stop_ids = eos_ids(model);
    // Sequences of one batch draw different tokens, each the same in any batch.
    request.sampling.seed += requests.size();
    requests.push_back(std::move(request));
  };
  for (const std::string& ids : options.ids) add(parse_ids(ids));
  for (const std::string& prompt : options.prompts) {
    if (options.form_of_prompt == PromptForm::kChat) {
      // The template writes the special tokens itself.
      add(tokenizer->encode(chat_prompt(options, model.directory, prompt), SpecialTokens::kNone));
    } else {
      add(tokenizer->encode(prompt, SpecialTokens::kAdd));
    }
  }
  return requests;
}

/// Room for every prompt and its reply, up to the model's limit.
DecoderOptions limits_for(const std::vector<GenerateRequest>& requests, const ModelConfig& config,
                          const GenerateOptions& options) {
  constexpr std::int64_t kPage = 16;
  DecoderOptions limits{.page_size = kPage};
  std::int64_t longest = 1;
  for (const GenerateRequest& request : requests) {
    // check_prompts has seen that every prompt is below the limit.
    const auto length = static_cast<std::int64_t>(request.ids.size());
    const std::int64_t tokens =
        length + std::min(request.max_new_tokens, config.max_position_embeddings - length);
    longest = std::max(longest, tokens);
    limits.cache_tokens += ceil_div(tokens, kPage) * kPage;
  }
  // A prompt at the limit is refused in words of the model's limit, not of this run's.
  limits.max_tokens = std::min(longest + 1, config.max_position_embeddings);
  limits.cache_tokens += kPage;
  if (!options.timeline.empty() || !options.trace.empty()) limits.run.tracing = Tracing::kOn;
  return limits;
}

void check_prompts(const std::vector<GenerateRequest>& requests, const ModelConfig& config) {
  for (const GenerateRequest& request : requests) {
    const auto length = static_cast<std::int64_t>(request.ids.size());
    require(length >= 1, "generate", "a prompt of at least one token", "an empty one");
    if (length >= config.max_position_embeddings) {
      throw Error("generate",
                  fmt::format("a prompt of at most {} tokens (the model's limit of {} less one for "
                              "the reply)",
                              config.max_position_embeddings - 1, config.max_position_embeddings),
                  std::to_string(length));
    }
    require_in_vocabulary(request.ids, config);
  }
}

Json times_json(const GenerateTimes& times, double load_seconds) {
  const double rate = times.decode_seconds > 0
                          ? static_cast<double>(times.decode_tokens) / times.decode_seconds
                          : 0;
  return {{"load_seconds", load_seconds},
          {"prompt_tokens", times.prompt_tokens},
          {"new_tokens", times.new_tokens},
          {"steps", times.steps},
          {"time_to_first_token_seconds", times.first_token_seconds},
          {"decode_seconds", times.decode_seconds},
          {"decode_tokens_per_second", rate}};
}

}  // namespace

std::string times_text(const GenerateTimes& times) {
  const double rate = times.decode_seconds > 0
                          ? static_cast<double>(times.decode_tokens) / times.decode_seconds
                          : 0;
  if (times.new_tokens == 0) {
    return fmt::format("{} prompt tokens, no new ones", times.prompt_tokens);
  }
  return fmt::format(
      "{} prompt tokens, first token after {:.0f} ms, {} new tokens, {:.1f} tokens/s",
      times.prompt_tokens, times.first_token_seconds * 1e3, times.new_tokens, rate);
}

int generate_text(const GenerateOptions& options, std::ostream& out, std::ostream& err) {
  const ModelDescription files = read_description(options.choice.model);
  std::optional<Tokenizer> tokenizer = options.prompts.empty()
                                           ? find_tokenizer(files.directory)
                                           : std::optional(open_tokenizer(files.directory));
  const std::vector<GenerateRequest> requests = requests_of(options, files, tokenizer);
  check_prompts(requests, files.config);
  check_trace_paths(options.timeline, options.trace);
  LoadedModel model =
      load_model(options.choice, files, limits_for(requests, files.config, options), err);

  const bool streams =
      options.form == OutputForm::kTable && requests.size() == 1 && tokenizer.has_value();
  std::optional<TextStream> text;
  if (streams) text.emplace(*tokenizer, DecodeSpecial::kSkip);
  const CaughtInterrupt interrupt;
  const auto go_on = [&] { return interrupt.happened() ? Continue::kStop : Continue::kGoOn; };
  const Generated generated = generate(
      *model.decoder, requests,
      [&](std::size_t /*request*/, std::int32_t id) {
        if (text) {
          out << text->push(id);
          flush_output(out);
        }
        return go_on();
      },
      go_on);
  const auto text_of = [&](const GenerateResult& result) {
    return tokenizer->decode(result.ids, DecodeSpecial::kSkip);
  };

  if (streams) {
    out << text->finish() << "\n";
    flush_output(out);
  }
  // Before the result: what cannot be written makes the one JSON object an error.
  if (model.decoder->options().run.tracing == Tracing::kOn && generated.times.steps > 0) {
    write_step_trace(model.decoder->last_trace(), "a decode step, " + model.description.directory,
                     options.timeline, options.trace, err);
  }
  if (options.form == OutputForm::kJson) {
    const auto result_json = [&](const GenerateResult& result) -> Json {
      return {{"ids", result.ids},
              {"text", tokenizer ? Json(text_of(result)) : Json(nullptr)},
              {"finish", name_of(result.finish)}};
    };
    Json json = {{"verb", "generate"}};
    if (requests.size() == 1) {
      json.update(result_json(generated.results[0]));
    } else {
      json["sequences"] = Json::array();
      for (const GenerateResult& result : generated.results) {
        json["sequences"].push_back(result_json(result));
      }
    }
    json["device"] = model.device->name();
    json["mode"] = name_of(options.choice.mode);
    json["submit"] = name_of(options.choice.submit);
    json["granularity"] = name_of(model.decoder->options().granularity);
    const StepShape shape = decode_shape(static_cast<std::int64_t>(requests.size()));
    json["knobs"] = name_of(model.decoder->knobs_of(shape).source);
    json["timings"] = times_json(generated.times, model.load_seconds);
    out << to_text(json);
  } else if (!streams) {
    for (std::size_t i = 0; i < generated.results.size(); ++i) {
      const GenerateResult& result = generated.results[i];
      if (requests.size() > 1) out << fmt::format("[{}] ", i);
      out << (tokenizer ? text_of(result) : fmt::format("{}", fmt::join(result.ids, ","))) << "\n";
    }
  }
  err << fmt::format("{}: {}, {} on {}\n", "tileweave generate", times_text(generated.times),
                     name_of(options.choice.mode), model.device->name());
  return interrupt.happened() ? kInterrupted : kSuccess;
}

}  // namespace tileweave::cli

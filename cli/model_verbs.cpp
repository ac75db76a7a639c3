#include "cli/model_verbs.h"

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench_decode.h"
#include "cli/chat.h"
#include "cli/check.h"
#include "cli/generate.h"
#include "cli/info.h"
#include "cli/logits.h"
#include "cli/open_model.h"
#include "cli/tokenize.h"
#include "cli/trace_model.h"
#include "cli/tune.h"
#include "cli/verb_options.h"
#include "tileweave/kernels/sampling/sampling_params.h"

namespace tileweave::cli {
namespace {

void add_sampling(CLI::App* verb, SamplingParams& sampling) {
  verb->add_option("--temperature", sampling.temperature, "0: the most likely token")
      ->capture_default_str();
  add_integer(verb, "--top-k", sampling.top_k, 0, "Only the k most likely tokens; 0: all");
  verb->add_option("--top-p", sampling.top_p, "Only the most likely tokens up to this sum")
      ->capture_default_str();
  verb->add_option("--min-p", sampling.min_p, "Only tokens of at least this share of the likeliest")
      ->capture_default_str();
  verb->add_option("--repetition-penalty", sampling.repetition_penalty,
                   "Above 1: tokens seen before become less likely")
      ->capture_default_str();
  add_integer(verb, "--seed", sampling.seed, std::uint64_t{0}, "Of the random numbers");
}

constexpr const char* kGenerateHelp = R"(
--prompt adds the tokenizer's special tokens and no chat template; --chat applies the template.
--ids are taken as they are. Repeated, they make one batch. The text streams to standard output,
times go to standard error; with --json standard output holds one object with `ids` (new tokens),
`text` and `timings`, or `sequences` for a batch. Ctrl-C ends the reply (exit status 130).

Examples:
  tileweave generate --model DIR --chat --prompt "Why is the sky blue?"
  tileweave generate --model DIR --prompt "Once upon a time" --temperature 0.8 --top-p 0.95 --seed 7
  tileweave generate --model DIR --ids 1,2,3 --max-new-tokens 32 --ignore-eos --json
  tileweave generate --model DIR --prompt A --prompt B --mode serial)";

void add_generate(VerbHost& host) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* verb = host.app().add_subcommand("generate", "Continues prompts");
  verb->footer(kGenerateHelp);
  add_choice(verb, options->choice);
  CLI::Option* prompt = verb->add_option("--prompt", options->prompts, "Text; may be repeated")
                            ->type_name("TEXT")
                            ->expected(1)
                            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                            ->allow_extra_args(false);  // and "[a,b]" is a text, no list
  CLI::Option* ids = verb->add_option("--ids", options->ids, "Token ids: 1,2,3; may be repeated")
                         ->type_name("IDS")
                         ->expected(1)
                         ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                         ->allow_extra_args(false);
  prompt->excludes(ids);
  CLI::Option* chat = verb->add_flag_callback(
      "--chat", [options] { options->form_of_prompt = PromptForm::kChat; },
      "Prompts are messages to which the model's chat template is applied");
  verb->add_option("--system", options->system, "System message, with --chat")
      ->type_name("TEXT")
      ->needs(chat);
  add_integer(verb, "--max-new-tokens", options->max_new_tokens, std::int64_t{0}, "Longest reply");
  add_sampling(verb, options->sampling);
  verb->add_flag_callback(
      "--ignore-eos", [options] { options->eos = StopAtEos::kIgnore; },
      "Goes on after an end-of-sequence token");
  verb->add_option("--timeline", options->timeline, "HTML page of the last step")
      ->type_name("FILE");
  verb->add_option("--trace", options->trace, "Perfetto trace of the last step")->type_name("FILE");
  host.add_json(verb);
  host.prepare(verb, [&host, options, prompt, ids] {
    if (prompt->count() == 0 && ids->count() == 0) {
      throw UsageError("--prompt or --ids is missing", "tileweave generate");
    }
    if (options->form_of_prompt == PromptForm::kChat && ids->count() != 0) {
      throw UsageError("--chat needs --prompt, not --ids", "tileweave generate");
    }
    if (options->max_new_tokens == 0 && !(options->timeline.empty() && options->trace.empty())) {
      throw UsageError("--timeline and --trace need a step, so --max-new-tokens above 0",
                       "tileweave generate");
    }
    of_arguments("tileweave generate", [&] {
      check_sampling_params(options->sampling);
      for (const std::string& text : options->ids) parse_ids(text);
    });
    options->form = host.form();
    return generate_text(*options, host.out(), host.err());
  });
}

constexpr const char* kChatHelp = R"(
One message per line; the reply streams. Ctrl-C ends the reply, Ctrl-D or an empty line the
conversation.

Examples:
  tileweave chat --model DIR
  echo "Name three rivers." | tileweave chat --model DIR)";

void add_chat(VerbHost& host) {
  auto options = std::make_shared<ChatVerbOptions>();
  CLI::App* verb = host.app().add_subcommand("chat", "A conversation");
  verb->footer(kChatHelp);
  add_choice(verb, options->choice);
  verb->add_option("--system", options->system, "System message")->type_name("TEXT");
  add_integer(verb, "--max-new-tokens", options->max_new_tokens, std::int64_t{1}, "Longest reply");
  add_integer(verb, "--context", options->context, std::int64_t{0},
              "Tokens of the whole conversation; 0: 4096, or what the model allows");
  add_sampling(verb, options->sampling);
  host.prepare(verb, [&host, options] {
    of_arguments("tileweave chat", [&] { check_sampling_params(options->sampling); });
    return chat(*options, std::cin, host.out(), host.err());
  });
}

constexpr const char* kLogitsHelp = R"(
The file holds one F32 tensor `logits`, (tokens, vocabulary), rows in the order of the tokens; it is
written step by step, into a named pipe too (--out /dev/fd/N). --side-by-side N takes N sequences at
a time through steps of one token of each, as decoding does: their rows come position by position.

Examples:
  tileweave logits --model DIR --ids 1,2,3 --out logits.safetensors
  tileweave logits --model DIR --ids-file many.txt --side-by-side 8 --out logits.safetensors)";

void add_logits(VerbHost& host) {
  auto options = std::make_shared<LogitsOptions>();
  CLI::App* verb = host.app().add_subcommand("logits", "Logits of every position, as a file");
  verb->footer(kLogitsHelp);
  add_choice(verb, options->choice);
  auto ids_text = std::make_shared<std::string>();
  CLI::Option* ids = verb->add_option("--ids", *ids_text, "Token ids: 1,2,3")->type_name("IDS");
  CLI::Option* prompt = verb->add_option("--prompt", options->prompt, "Text")->type_name("TEXT");
  CLI::Option* ids_file = verb->add_option("--ids-file", options->ids_file,
                                           "Sequences: token ids as of --ids, one sequence a line")
                              ->type_name("FILE");
  prompt->excludes(ids)->excludes(ids_file);
  ids->excludes(ids_file);
  add_integer(verb, "--side-by-side", options->side_by_side, std::int64_t{0}, std::int64_t{64},
              "Sequences in a step of one token of each; 0: one after the other, as prompts");
  add_integer(verb, "--rows-per-step", options->rows_per_step, std::int64_t{1}, std::int64_t{2048},
              "Most rows of a step of a prompt; the device may take fewer");
  verb->add_option("--out", options->out, "File to write")->required()->type_name("FILE");
  host.add_json(verb);
  host.prepare(verb, [&host, options, ids, ids_text, prompt, ids_file] {
    if (prompt->count() + ids->count() + ids_file->count() == 0) {
      throw UsageError("--ids, --ids-file or --prompt is missing", "tileweave logits");
    }
    if (options->out.empty()) throw UsageError("--out is empty", "tileweave logits");
    if (ids->count() != 0) {
      options->ids = of_arguments("tileweave logits", [&] { return parse_ids(*ids_text); });
    }
    options->form = host.form();
    return write_logits(*options, host.out(), host.err());
  });
}

constexpr const char* kTokenizeHelp = R"(
Needs tokenizer.json only. A file's bytes are taken as they are, its last line break included.

Examples:
  tileweave tokenize --model DIR --text "Hello, world"
  tileweave tokenize --model DIR --text-file story.txt --no-special --json
  tileweave tokenize --model DIR --ids 1,2,3)";

void add_tokenize(VerbHost& host) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* verb = host.app().add_subcommand("tokenize", "Token ids of a text, or back");
  verb->footer(kTokenizeHelp);
  add_model(verb, options->model);
  auto file_text = std::make_shared<std::string>();
  auto ids_text = std::make_shared<std::string>();
  CLI::Option* text = verb->add_option("--text", options->text, "Text")->type_name("TEXT");
  CLI::Option* file =
      verb->add_option("--text-file", *file_text, "File; -: standard input")->type_name("FILE");
  CLI::Option* ids =
      verb->add_option("--ids", *ids_text, "Token ids to decode: 1,2,3")->type_name("IDS");
  text->excludes(file)->excludes(ids);
  file->excludes(ids);
  verb->add_flag_callback(
      "--no-special", [options] { options->special = SpecialTokens::kNone; },
      "Without the tokens that the tokenizer adds around a text");
  host.add_json(verb);
  host.prepare(verb, [&host, options, text, file, file_text, ids, ids_text] {
    if (text->count() + file->count() + ids->count() == 0) {
      throw UsageError("--text, --text-file or --ids is missing", "tileweave tokenize");
    }
    if (file->count() != 0) options->text_file = *file_text;
    if (ids->count() != 0) {
      options->ids = of_arguments("tileweave tokenize", [&] { return parse_ids(*ids_text); });
    }
    options->form = host.form();
    return tokenize(*options, host.out(), host.err());
  });
}

constexpr const char* kInfoHelp = R"(
Examples:
  tileweave info --model DIR
  tileweave info --model org/name --context 32768 --json)";

void add_info(VerbHost& host) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* verb = host.app().add_subcommand("info", "What a model is, before it is loaded");
  verb->footer(kInfoHelp);
  add_model(verb, options->model);
  add_integer(verb, "--context", options->context, std::int64_t{1},
              "Tokens that the memory is estimated for");
  host.add_json(verb);
  host.prepare(verb, [&host, options] {
    options->form = host.form();
    return info(*options, host.out());
  });
}

constexpr const char* kCheckHelp = R"(
Examples:
  tileweave check --model DIR                 a decode step
  tileweave check --model DIR --rows 64       a step with 64 rows of prompts
  tileweave check --model DIR --batch 8 --granularity stages --json)";

void add_check(VerbHost& host) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* verb = host.app().add_subcommand("check", "The verdict on a step's plan, edge by edge");
  verb->footer(kCheckHelp);
  add_choice(verb, options->choice);
  add_integer(verb, "--batch", options->batch, std::int64_t{1}, std::int64_t{4096}, "Sequences");
  add_integer(verb, "--rows", options->rows, std::int64_t{1}, std::int64_t{4096},
              "Tokens of the step; unless given one per sequence")
      ->default_str("");
  host.add_json(verb);
  host.prepare(verb, [&host, options] {
    options->form = host.form();
    return check(*options, host.out(), host.err());
  });
}

constexpr const char* kTraceHelp = R"(
Examples:
  tileweave trace --model DIR
  tileweave trace --model DIR --mode serial --timeline serial.html --trace serial.json)";

void add_trace(VerbHost& host) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* verb = host.app().add_subcommand("trace", "A decode step as a timeline");
  verb->footer(kTraceHelp);
  add_choice(verb, options->choice);
  add_integer(verb, "--batch", options->batch, std::int64_t{1}, std::int64_t{128}, "Sequences");
  add_integer(verb, "--context", options->context, std::int64_t{1}, kMostTokens,
              "Tokens before the step");
  verb->add_option("--timeline", options->timeline, "HTML page to write")
      ->type_name("FILE")
      ->capture_default_str();
  verb->add_option("--trace", options->trace, "Perfetto trace to write")
      ->type_name("FILE")
      ->capture_default_str();
  host.add_json(verb);
  host.prepare(verb, [&host, options] {
    options->form = host.form();
    return trace_model(*options, host.out(), host.err());
  });
}

constexpr const char* kTuneHelp = R"(
Measures a decode step with the default knobs and others (streams, edges, cuts of products, which on a
GPU are tuned alone first), in turn, and keeps the fastest per batch and context. generate, chat,
logits, trace, check and bench decode then take it for this model, GPU, driver and version, unless
--no-cache or --knobs is given. Knobs never change a result; an arm that did is refused. What is
measured lies in the folder given by --cache, else in $XDG_CACHE_HOME/tileweave or ~/.cache/tileweave.

Examples:
  tileweave tune --model DIR
  tileweave tune --device cuda --model qwen3-8b --batch 1,8 --context 128,1024
  tileweave tune --model DIR --no-cache --json           measures, keeps nothing)";

void add_tune(VerbHost& host) {
  auto options = std::make_shared<TuneVerbOptions>();
  CLI::App* verb = host.app().add_subcommand("tune", "Measures what a model runs fastest with");
  verb->footer(kTuneHelp);
  add_choice(verb, options->choice);
  for (const char* measured : {"--knobs", "--streams", "--mode"}) {
    verb->remove_option(verb->get_option(measured));
  }
  const auto add_list = [&](const char* name, std::vector<std::int64_t>& to, std::int64_t most,
                            const char* usual, const char* help) {
    verb->add_option_function<std::string>(
            name,
            [&to, most](const std::string& text) {
              of_arguments("tileweave tune", [&] { to = parse_counts(text, most); });
            },
            help)
        ->type_name("LIST")
        ->default_str(usual);
  };
  add_list("--batch", options->batches, 128, "1", "Sequences");
  add_list("--context", options->contexts, kMostTokens, "128",
           "Tokens before the first measured step");
  add_integer(verb, "--steps", options->steps, std::int64_t{1}, kMostTokens,
              "Steps of a measurement");
  add_integer(verb, "--repeat", options->repeat, std::int64_t{1}, kMostTokens,
              "Measurements of each arm");
  add_integer(verb, "--budget", options->budget, std::int64_t{1}, kMostTokens,
              "Seconds for one product alone");
  add_words<ProductTuning>(
      verb, "--products", options->products,
      {{"yes", ProductTuning::kYes}, {"again", ProductTuning::kAgain}, {"no", ProductTuning::kNo}},
      "Whether products are tuned alone, also those that were");
  host.add_json(verb);
  host.prepare(verb, [&host, options] {
    options->form = host.form();
    return tune_model(*options, host.out(), host.err());
  });
}

}  // namespace

void add_model_verbs(VerbHost& host) {
  add_info(host);
  add_generate(host);
  add_chat(host);
  add_logits(host);
  add_tokenize(host);
  add_check(host);
  add_trace(host);
  add_tune(host);
}

}  // namespace tileweave::cli

#include "cli/bench_verbs.h"

#include <memory>

#include "cli/bench_attention.h"
#include "cli/bench_decode.h"
#include "cli/bench_gemm.h"
#include "cli/bench_prefill.h"
#include "cli/verb_options.h"

namespace tileweave::cli {
namespace {

constexpr const char* kBenchDecodeHelp = R"(
On the CPU, steps of `serial` and `overlap` alternate with a read of 1 GiB by as many threads, which
is the ceiling: a step reads all weights once. On a GPU, a table over all that the lists name, with
the arms `serial` (every edge full), `pdl` (every edge programmatic), `overlap` (what the plan says)
and, with --tile, `tile`, beside the streaming rate of a kernel that only reads. Presets have random
weights. --grow 128+64 measures 64 steps from a context of 128 tokens on; --without-attention says
what attention adds to a step.

Examples:
  tileweave bench decode --model DIR
  tileweave bench decode --model DIR --batch 8 --granularity stages --json
  tileweave bench decode --device cuda --model llama-3.2-1b --batch 1,8 --context 128,1024
  tileweave bench decode --device cuda --model qwen3-8b --grow 128+64,1024+1024)";

void add_bench_decode(VerbHost& host, CLI::App* bench) {
  auto options = std::make_shared<BenchDecodeOptions>();
  CLI::App* verb = bench->add_subcommand("decode", "Time of a decode step, serial and overlapped");
  verb->footer(kBenchDecodeHelp);
  add_choice(verb, options->choice);
  verb->remove_option(verb->get_option("--mode"));
  verb->remove_option(verb->get_option("--granularity"));
  verb->remove_option(verb->get_option("--knobs"));
  const auto add_list = [&](const char* name, auto read, const char* usual, const char* help) {
    verb->add_option_function<std::string>(
            name,
            [read](const std::string& text) {
              of_arguments("tileweave bench decode", [&] { read(text); });
            },
            help)
        ->type_name("LIST")
        ->default_str(usual);
  };
  add_list(
      "--batch", [options](const std::string& text) { options->batches = parse_counts(text, 128); },
      "1", "Sequences");
  add_list(
      "--context",
      [options](const std::string& text) { options->contexts = parse_counts(text, kMostTokens); },
      "", "Tokens before the first measured step; 128 unless given or --grow is");
  add_list(
      "--grow",
      [options](const std::string& text) {
        options->growths = parse_growths(text, kMostTokens / 2);
      },
      "", "Contexts and steps from there on, as in 128+64,1024+1024, on a GPU");
  add_list(
      "--granularity",
      [options](const std::string& text) { options->granularities = parse_granularities(text); },
      "", "ops, stages or both; unless given, ops on the CPU and both on a GPU");
  add_integer(verb, "--steps,--new-tokens", options->steps, std::int64_t{1}, kMostTokens,
              "Steps of a measurement; unless given, 16 on the CPU and 64 on a GPU")
      ->default_str("");
  add_integer(verb, "--repeat", options->repeat, std::int64_t{1}, kMostTokens,
              "Measurements of each arm");
  verb->add_option("--knobs", options->knobs,
                   "Knobs of the plan, on a GPU; repeated, each more file is an arm of its own")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  verb->add_option("--serial-knobs", options->serial_knobs, "Those of the arm `serial`")
      ->type_name("FILE");
  verb->add_option("--json-file", options->json_file, "File for the numbers, on a GPU")
      ->type_name("FILE");
  verb->add_flag_callback(
      "--tile", [options] { options->tile_arm = ExtraArm::kYes; },
      "Also with every edge a tile edge, on a GPU");
  verb->add_flag_callback(
      "--without-attention", [options] { options->without_attention = ExtraArm::kYes; },
      "Also with a copy of q in place of attention, on a GPU");
  host.add_json(verb);
  host.prepare(verb, [&host, options] {
    options->form = host.form();
    return bench_decode(*options, host.out(), host.err());
  });
}

constexpr const char* kBenchPrefillHelp = R"(
A prompt of random tokens goes into an empty sequence; the last one's logits are not computed.
FLOPs: two per weight of a layer and token, and those of causal attention.

Examples:
  tileweave bench prefill --model DIR --tokens 512
  tileweave bench prefill --device cuda --model llama-3.1-8b --tokens 512,2048 --json)";

void add_bench_prefill(VerbHost& host, CLI::App* bench) {
  auto options = std::make_shared<BenchPrefillOptions>();
  CLI::App* verb = bench->add_subcommand("prefill", "Time of taking in a prompt");
  verb->footer(kBenchPrefillHelp);
  add_choice(verb, options->choice);
  verb->add_option_function<std::string>(
          "--tokens",
          [options](const std::string& text) {
            of_arguments("tileweave bench prefill",
                         [&] { options->tokens = parse_counts(text, kMostTokens); });
          },
          "Lengths of prompts")
      ->type_name("LIST")
      ->default_str("512,2048");
  add_integer(verb, "--repeat", options->repeat, std::int64_t{1}, kMostTokens,
              "Measurements of each length");
  add_integer(verb, "--rows-per-step", options->rows_per_step, std::int64_t{0}, std::int64_t{2048},
              "Most rows of a step, where the device takes as many; 0: as is usual");
  verb->add_option("--json-file", options->json_file, "File for the numbers")->type_name("FILE");
  host.add_json(verb);
  host.prepare(verb, [&host, options] {
    options->form = host.form();
    return bench_prefill(*options, host.out(), host.err());
  });
}

/// What the verbs of single kernels have in common.
template <class Options>
void add_kernel_options(CLI::App* verb, Options& options) {
  add_integer(verb, "--repeat", options.repeat, std::int64_t{1}, kMostTokens,
              "Measurements of each arm");
  verb->add_option("--json-file", options.json_file, "File for the numbers")->type_name("FILE");
}

constexpr const char* kBenchGemmHelp = R"(
Needs a GPU. Products of 1 to 64 rows, alone (every edge full) and in chains, beside a kernel that
reads the same bytes and does nothing else; rings and windows differ in how much they fetch ahead.

Examples:
  tileweave bench gemm
  tileweave bench gemm --rows 1,16 --repeat 5 --json)";

void add_bench_gemm(VerbHost& host, CLI::App* bench) {
  auto options = std::make_shared<BenchGemmOptions>();
  CLI::App* verb = bench->add_subcommand("gemm", "Products of decoding, alone and in chains");
  verb->footer(kBenchGemmHelp);
  verb->add_option_function<std::string>(
          "--rows",
          [options](const std::string& text) {
            of_arguments("tileweave bench gemm",
                         [&] { options->rows = parse_counts(text, kMostGemmRows); });
          },
          "Rows of a product")
      ->type_name("LIST")
      ->default_str("1,8,16");
  add_kernel_options(verb, *options);
  host.add_json(verb);
  host.prepare(verb, [&host, options] {
    options->form = host.form();
    return bench_gemm(*options, host.out(), host.err());
  });
}

constexpr const char* kBenchAttentionHelp = R"(
Needs a GPU. In a chain a small kernel makes the next row of qkv from what attention left, and a
chain of such kernels alone is what to subtract; alone, attention over many cold keys is held
against a kernel that reads the same bytes and does nothing else.

Examples:
  tileweave bench attention
  tileweave bench attention --repeat 5 --json)";

void add_bench_attention(VerbHost& host, CLI::App* bench) {
  auto options = std::make_shared<BenchAttentionOptions>();
  CLI::App* verb = bench->add_subcommand("attention", "Decode attention, alone and in chains");
  verb->footer(kBenchAttentionHelp);
  add_kernel_options(verb, *options);
  host.add_json(verb);
  host.prepare(verb, [&host, options] {
    options->form = host.form();
    return bench_attention(*options, host.out(), host.err());
  });
}

}  // namespace

void add_bench_verbs(VerbHost& host) {
  CLI::App* bench = host.app().get_subcommand("bench");
  add_bench_decode(host, bench);
  add_bench_prefill(host, bench);
  add_bench_gemm(host, bench);
  add_bench_attention(host, bench);
}

}  // namespace tileweave::cli

#include "cli/moe_verbs.h"

#include <map>
#include <memory>

#include "cli/command_line.h"
#include "cli/moe_plan.h"
#include "cli/moe_workload.h"

namespace tileweave::cli {
namespace {

constexpr const char* kMoeHelp = R"(
Examples:
  tileweave moe plan                     who computes what under a skewed load
  tileweave moe workload --list          the 147 loads that plans are compared on)";

constexpr const char* kPlanHelp = R"(
The load is drawn from a distribution unless --counts or --trace names a file. Times are modelled,
in units of the time of one block of rows.

Examples:
  tileweave moe plan --experts 256 --load zipf --parameter 1.2 --tokens 4096
  tileweave moe plan --counts rows.csv --preset paper --pass backward --json
  tileweave moe plan --trace route.jsonl --layer 3 --ranks 8 --svg load.svg
  tileweave moe plan --method bisection --gate off)";

constexpr const char* kWorkloadHelp = R"(
Examples:
  tileweave moe workload --load log-normal --parameter 0.5 --trace-out route.jsonl
  tileweave moe workload --trace route.jsonl --twin --counts-out even.csv
  tileweave moe workload --list --json)";

template <class T>
void add_words(CLI::App* verb, const char* name, const std::map<std::string, T>& words,
               const std::string& usual, const std::string& help,
               std::function<void(const T&)> set) {
  std::string names;
  for (const auto& word : words) names += (names.empty() ? "" : "|") + word.first;
  verb->add_option_function<std::string>(
          name, [words, set](const std::string& word) { set(words.at(word)); }, help)
      ->check(CLI::IsMember(words))
      ->type_name(names)
      ->default_str(usual);
}

void add_source(CLI::App* verb, MoeSource& source) {
  verb->add_option("--ranks", source.ranks, "Ranks; 8 unless a file says otherwise")
      ->check(CLI::Range(1, 4096));
  verb->add_option("--experts", source.experts, "Experts; 128 unless a file says otherwise")
      ->check(CLI::Range(1, 1 << 16));
  verb->add_option("--top-k", source.top_k, "Experts of a token; 8 unless a file says otherwise")
      ->check(CLI::Range(1, 1 << 16));
  CLI::Option* tokens = verb->add_option("--tokens", source.tokens, "Tokens of each rank")
                            ->check(CLI::Range(1, 1 << 20))
                            ->capture_default_str();
  add_words<LoadFamily>(verb, "--load",
                        {{"zipf", LoadFamily::kZipf},
                         {"log-normal", LoadFamily::kLogNormal},
                         {"dirichlet", LoadFamily::kDirichlet},
                         {"balanced", LoadFamily::kBalanced}},
                        "zipf", "Distribution of rows over experts",
                        [&source](LoadFamily family) { source.family = family; });
  verb->add_option("--parameter", source.parameter,
                   "Zipf: exponent; log-normal: sigma; Dirichlet: concentration")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  verb->add_option("--seed", source.seed, "Of the distribution")->capture_default_str();
  CLI::Option* counts =
      verb->add_option("--counts", source.counts_file, "CSV with the header rank,expert,count")
          ->type_name("FILE");
  CLI::Option* trace =
      verb->add_option("--trace", source.trace_file,
                       "JSONL, one object a line: layer, rank, topk_ids (an array for each token)")
          ->type_name("FILE");
  verb->add_option("--layer", source.layer, "Of the trace; its first unless given")
      ->check(CLI::Range(0, 1 << 20));
  counts->excludes(trace)->excludes(tokens);
  trace->excludes(tokens);
}

void add_plan(VerbHost& host, CLI::App* moe) {
  auto options = std::make_shared<MoePlanOptions>();
  CLI::App* verb = moe->add_subcommand("plan", "Replicas and blocks of rows for a load");
  verb->footer(kPlanHelp);
  add_source(verb, options->source);
  add_words<MoePreset>(verb, "--preset",
                       {{"paper", MoePreset::kPaper}, {"tuned", MoePreset::kTuned}}, "tuned",
                       "The paper as printed, or with what we added",
                       [options](MoePreset preset) { options->preset = preset; });
  add_words<PlanMethod>(verb, "--method",
                        {{"searches", PlanMethod::kSearches},
                         {"bisection", PlanMethod::kBisection},
                         {"packing", PlanMethod::kPacking}},
                        "searches", "Four greedy searches, or a planner for comparison",
                        [options](PlanMethod method) { options->method = method; });
  add_words<PlanObjective>(
      verb, "--pass",
      {{"forward", PlanObjective::kLoadOnly}, {"backward", PlanObjective::kReductionAware}},
      "forward", "Backward also counts the reduction of gradients",
      [options](PlanObjective objective) { options->objective = objective; });
  verb->add_option("--slots", options->slots, "Replicas that a rank may hold; a quarter of its own")
      ->check(CLI::Range(0, 1 << 16));
  verb->add_option("--block-rows", options->block_rows, "Most rows of a block")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  verb->add_option("--lambda", options->lambda,
                   "Blocks that a replica costs its owner; paper: 12, tuned: from the rates")
      ->check(CLI::Range(0.0, 1e6));
  verb->add_option("--tflops", options->rates.tera_flops, "Of a rank's expert GEMMs, for lambda")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb->add_option("--link", options->rates.link_gigabytes, "GB/s between ranks, for lambda")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  add_words<PlanGate>(verb, "--gate", {{"on", PlanGate::kPredictedTime}, {"off", PlanGate::kOff}},
                      "", "Fixed placement unless the modelled time falls enough; tuned: on",
                      [options](PlanGate gate) { options->gate = gate; });
  verb->add_option("--slack", options->slack_percent, "How much is enough, per cent; tuned: 2")
      ->check(CLI::Range(0.0, 100.0));
  verb->add_option("--svg", options->svg, "Picture to write")->type_name("FILE");
  host.add_json(verb);
  host.prepare(verb, [&host, options] {
    options->form = host.form();
    return moe_plan(*options, host.out(), host.err());
  });
}

void add_workload(VerbHost& host, CLI::App* moe) {
  auto options = std::make_shared<MoeWorkloadOptions>();
  CLI::App* verb = moe->add_subcommand("workload", "A load of experts, described and written");
  verb->footer(kWorkloadHelp);
  add_source(verb, options->source);
  verb->add_flag("--twin", options->balanced_twin, "Its balanced twin instead");
  verb->add_flag("--list", options->list, "The 147 configurations instead");
  verb->add_option("--counts-out", options->counts_out, "CSV to write")->type_name("FILE");
  verb->add_option("--trace-out", options->trace_out, "JSONL to write")->type_name("FILE");
  host.add_json(verb);
  host.prepare(verb, [&host, options] {
    options->form = host.form();
    return moe_workload(*options, host.out(), host.err());
  });
}

}  // namespace

void add_moe_verbs(VerbHost& host) {
  CLI::App* moe = host.app().add_subcommand("moe", "Mixtures of experts: loads and plans");
  moe->footer(kMoeHelp);
  host.prepare(moe, [] { return kSuccess; });  // the parser has asked for one of its verbs
  add_plan(host, moe);
  add_workload(host, moe);
}

}  // namespace tileweave::cli

#include "cli/bench_prefill.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "cli/command_line.h"
#include "cli/hop_report.h"
#include "cli/open_model.h"
#include "cli/progress_bar.h"
#include "cli/version.h"
#include "tileweave/core/atomic_file.h"
#include "tileweave/core/error.h"

namespace tileweave::cli {
namespace {

std::vector<std::int32_t> random_prompt(std::int64_t tokens, std::int64_t vocabulary) {
  std::vector<std::int32_t> ids;
  std::uint64_t random = 0x2545f4914f6cdd1dU;
  for (std::int64_t i = 0; i < tokens; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    ids.push_back(
        static_cast<std::int32_t>((random >> 33) % static_cast<std::uint64_t>(vocabulary)));
  }
  return ids;
}

/// Of a prompt, without embedding and head.
double flops_of(const ModelConfig& config, std::int64_t tokens) {
  const auto hidden = static_cast<double>(config.hidden_size);
  const auto q = static_cast<double>(config.num_heads * config.head_dim);
  const auto kv = static_cast<double>(config.num_kv_heads * config.head_dim);
  const auto t = static_cast<double>(tokens);
  const double matrices = hidden * (q + 2 * kv) + q * hidden +
                          3 * hidden * static_cast<double>(config.intermediate_size);
  const double attention = 4 * q * t * (t + 1) / 2;  // a row and the rows before it
  return static_cast<double>(config.num_layers) * (2 * matrices * t + attention);
}

}  // namespace

int bench_prefill(const BenchPrefillOptions& options, std::ostream& out, std::ostream& err) {
  require(!options.tokens.empty() && options.repeat >= 1, "measure prefill",
          "a prompt and a measurement at least");
  const std::int64_t longest = *std::max_element(options.tokens.begin(), options.tokens.end());
  LoadedModel model = load_model(options.choice, read_description(options.choice.model),
                                 {.max_tokens = longest, .max_rows = options.rows_per_step}, err);
  Decoder& decoder = *model.decoder;
  std::string table =
      fmt::format("{:>8} {:>10} {:>12} {:>10}\n", "tokens", "ms", "tokens/s", "TFLOP/s");
  Json rows = Json::array();
  {
    ProgressBar bar(err, "measuring");
    std::size_t done = 0;
    for (const std::int64_t tokens : options.tokens) {
      const std::vector<std::int32_t> ids = random_prompt(tokens, decoder.config().vocab_size);
      std::vector<double> seconds;
      for (std::int64_t r = -1; r < options.repeat; ++r) {  // the first one makes the plans
        const KvCache::SequenceId sequence = decoder.add_sequence();
        const auto start = std::chrono::steady_clock::now();
        prefill(decoder, sequence, ids);
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
        decoder.remove_sequence(sequence);
        if (r >= 0) seconds.push_back(spent.count());
        bar.update(++done, options.tokens.size() * static_cast<std::size_t>(options.repeat + 1));
      }
      const double middle = median(seconds);
      const double flops = flops_of(decoder.config(), tokens);
      const double rate = static_cast<double>(tokens) / middle;
      table += fmt::format("{:>8} {:>10.3f} {:>12.0f} {:>10.2f}\n", tokens, middle * 1e3, rate,
                           flops / middle * 1e-12);
      rows.push_back({{"tokens", tokens},
                      {"ms", middle * 1e3},
                      {"ms_lowest", *std::min_element(seconds.begin(), seconds.end()) * 1e3},
                      {"tokens_per_second", rate},
                      {"flops", flops},
                      {"flops_per_second", flops / middle}});
    }
  }
  const Json json = {{"verb", "bench prefill"},
                     {"version", kVersion},
                     {"model", model.description.directory},
                     {"device", model.device->name()},
                     {"machine", model.device->limits().name},
                     {"sms", model.device->limits().num_sms},
                     {"granularity", name_of(decoder.options().granularity)},
                     {"wide_products", name_of(decoder.options().wide_products)},
                     {"rows_per_step", decoder.options().max_rows},
                     {"repeat", options.repeat},
                     {"prompts", rows}};
  if (!options.json_file.empty()) write_file_atomically(options.json_file, to_text(json));
  if (options.form == OutputForm::kJson) {
    out << to_text(json);
    return kSuccess;
  }
  out << fmt::format(
      "{} on {}, {} SMs, {} granularity, wide products {}, at most {} rows a step; medians of {}\n",
      model.description.directory, model.device->limits().name, model.device->limits().num_sms,
      name_of(decoder.options().granularity), name_of(decoder.options().wide_products),
      decoder.options().max_rows, options.repeat);
  out << table;
  return kSuccess;
}

}  // namespace tileweave::cli

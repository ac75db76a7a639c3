#include "cli/bench_decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <vector>

#include "cli/bench_decode_gpu.h"
#include "cli/command_line.h"
#include "cli/hop_report.h"
#include "cli/open_model.h"
#include "cli/progress_bar.h"
#include "cli/read_rate.h"
#include "cli/version.h"
#include "tileweave/core/error.h"
#include "tileweave/models/dense_model.h"

namespace tileweave::cli {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 30;

constexpr std::int64_t kCpuSteps = 16;
constexpr std::int64_t kUsualContext = 128;

/// One shape on the CPU.
struct CpuCase {
  ModelChoice choice;
  std::int64_t batch = 1;
  std::int64_t context = 1;
  std::int64_t steps = kCpuSteps;
};

/// One way of running the model, with sequences that stand at the context asked for.
class Arm {
 public:
  Arm(const CpuCase& options, Mode mode, std::ostream& err) : options_(options) {
    ModelChoice choice = options.choice;
    choice.mode = mode;
    const std::int64_t tokens = options.context + options.steps;
    model_ = load_model(choice, read_description(choice.model),
                        {.max_tokens = tokens, .cache_tokens = options.batch * (tokens + 16)}, err);
    const std::int64_t vocabulary = model_.description.config.vocab_size;
    std::uint64_t random = 0x2545f4914f6cdd1dU;
    for (std::int64_t s = 0; s < options.batch; ++s) {
      sequences_.push_back(model_.decoder->add_sequence());
      std::vector<std::int32_t> ids;
      for (std::int64_t i = 0; i < options.context; ++i) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        ids.push_back(
            static_cast<std::int32_t>((random >> 33) % static_cast<std::uint64_t>(vocabulary)));
      }
      prefill(*model_.decoder, sequences_.back(), ids);
    }
    next_.assign(static_cast<std::size_t>(options.batch), 1);
    measure();  // makes the decode step's plan, and warms up
  }

  /// Seconds per step, from the same context every time.
  double measure() {
    for (const auto sequence : sequences_) model_.decoder->truncate(sequence, options_.context);
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < options_.steps; ++i) {
      next_ = decode_step(*model_.decoder, sequences_, next_);
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    return spent.count() / static_cast<double>(options_.steps);
  }

  const LoadedModel& model() const { return model_; }

 private:
  const CpuCase& options_;
  LoadedModel model_;
  std::vector<KvCache::SequenceId> sequences_;
  std::vector<std::int32_t> next_;
};

/// Whether a GPU runs the model.
bool on_gpu(const ModelChoice& choice, const ModelConfig& config) {
  if (!choice.device.empty()) return choice.device == "cuda";
  return cuda_usable() && why_not_on_gpu(config).empty();
}

}  // namespace

std::vector<std::int64_t> parse_counts(const std::string& text, std::int64_t most) {
  std::vector<std::int64_t> counts;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t count = 0;
    const auto [next, error] = std::from_chars(at, end, count);
    if (error != std::errc() || count < 1 || count > most || (next != end && *next != ',')) {
      throw Error("read a list of numbers", fmt::format("numbers from 1 to {} as in 1,2,4", most),
                  "`" + text + "`");
    }
    counts.push_back(count);
    if (next == end) return counts;
    at = next + 1;
  }
}

std::vector<Growth> parse_growths(const std::string& text, std::int64_t most) {
  std::vector<Growth> growths;
  std::size_t at = 0;
  while (true) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, comma - at);
    const std::size_t plus = word.find('+');
    try {
      require(plus != std::string::npos, "read a growth", "a `+`");
      const auto number = [&](const std::string& digits) {
        const std::vector<std::int64_t> one = parse_counts(digits, most);
        require(one.size() == 1, "read a growth", "one number");
        return one[0];
      };
      growths.push_back({number(word.substr(0, plus)), number(word.substr(plus + 1))});
    } catch (const Error&) {
      throw Error("read growing contexts",
                  "tokens and steps as in 128+64,1024+1024, from 1 to " + std::to_string(most),
                  "`" + text + "`");
    }
    if (comma == text.size()) return growths;
    at = comma + 1;
  }
}

std::vector<Granularity> parse_granularities(const std::string& text) {
  std::vector<Granularity> found;
  std::size_t at = 0;
  while (true) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, comma - at);
    if (word == name_of(Granularity::kOps)) {
      found.push_back(Granularity::kOps);
    } else if (word == name_of(Granularity::kStages)) {
      found.push_back(Granularity::kStages);
    } else {
      throw Error("read granularities", "`ops`, `stages` or both as in ops,stages",
                  "`" + text + "`");
    }
    if (comma == text.size()) return found;
    at = comma + 1;
  }
}

int bench_decode(const BenchDecodeOptions& given, std::ostream& out, std::ostream& err) {
  BenchDecodeOptions asked = given;
  if (asked.contexts.empty() && asked.growths.empty()) asked.contexts = {kUsualContext};
  require(!asked.batches.empty() && asked.steps >= 0 && asked.repeat >= 1, "measure decoding",
          "a batch, context, number of steps and repeats of at least 1");
  const ModelDescription description = read_description(asked.choice.model);
  if (on_gpu(asked.choice, description.config)) {
    return bench_decode_gpu(asked, description, out, err);
  }
  require(asked.batches.size() == 1 && asked.contexts.size() == 1 &&
              asked.granularities.size() <= 1 && asked.knobs.empty() &&
              asked.serial_knobs.empty() && asked.json_file.empty() && asked.growths.empty() &&
              asked.tile_arm == ExtraArm::kNo && asked.without_attention == ExtraArm::kNo,
          "measure decoding",
          "one batch, context and granularity on the CPU, and no --knobs, --serial-knobs, --grow, "
          "--tile, --without-attention or --json-file");
  CpuCase options{.choice = asked.choice,
                  .batch = asked.batches[0],
                  .context = asked.contexts[0],
                  .steps = asked.steps == 0 ? kCpuSteps : asked.steps};
  if (!asked.granularities.empty()) options.choice.granularity = asked.granularities[0];
  Arm serial(options, Mode::kSerial, err);
  Arm overlap(options, Mode::kOverlap, err);
  const LoadedModel& model = overlap.model();
  ReadRate memory(kReadBytes, model.device->limits().num_sms);
  memory.measure();
  std::vector<double> serial_seconds, overlap_seconds, rates;
  {
    ProgressBar bar(err, "measuring");
    for (std::int64_t i = 0; i < asked.repeat; ++i) {
      serial_seconds.push_back(serial.measure());
      overlap_seconds.push_back(overlap.measure());
      rates.push_back(memory.measure());
      bar.update(static_cast<std::size_t>(i + 1), static_cast<std::size_t>(asked.repeat));
    }
  }
  const double rate = median(rates);
  const std::size_t bytes = model.decoder->weights().bytes_per_step();
  const double ceiling = rate / static_cast<double>(bytes);  // steps a second
  struct Row {
    const char* mode;
    double seconds;
  };
  const Row rows[] = {{"serial", median(serial_seconds)}, {"overlap", median(overlap_seconds)}};
  const auto batch = static_cast<double>(options.batch);
  if (asked.form == OutputForm::kJson) {
    Json arms = Json::array();
    for (const Row& row : rows) {
      arms.push_back({{"mode", row.mode},
                      {"ms_per_step", row.seconds * 1e3},
                      {"tokens_per_second", batch / row.seconds},
                      {"share_of_read_rate", 1 / row.seconds / ceiling}});
    }
    out << to_text({{"verb", "bench decode"},
                    {"version", kVersion},
                    {"model", model.description.directory},
                    {"device", model.device->name()},
                    {"threads", model.device->limits().num_sms},
                    {"granularity", name_of(model.decoder->options().granularity)},
                    {"knobs", name_of(model.decoder->knobs_of(decode_shape(options.batch)).source)},
                    {"batch", options.batch},
                    {"context", options.context},
                    {"weight_bytes_per_step", bytes},
                    {"read_bytes_per_second", rate},
                    {"overlap_over_serial", rows[0].seconds / rows[1].seconds},
                    {"arms", arms}});
    return kSuccess;
  }
  out << fmt::format("{}, {} on {} ({} threads), batch {}, context {}, {} granularity\n",
                     model.description.directory, bytes_text(static_cast<double>(bytes)),
                     model.device->name(), model.device->limits().num_sms, options.batch,
                     options.context, name_of(model.decoder->options().granularity));
  out << fmt::format("read rate of 1 GiB: {}/s, so at most {:.1f} steps/s\n", bytes_text(rate),
                     ceiling);
  out << fmt::format("{:<8} {:>9} {:>10} {:>20}\n", "mode", "ms/step", "tokens/s",
                     "share of read rate");
  for (const Row& row : rows) {
    out << fmt::format("{:<8} {:>9.2f} {:>10.1f} {:>18.0f} %\n", row.mode, row.seconds * 1e3,
                       batch / row.seconds, 100 / row.seconds / ceiling);
  }
  out << fmt::format("overlap runs at {:.2f} times the speed of serial (medians of {})\n",
                     rows[0].seconds / rows[1].seconds, asked.repeat);
  return kSuccess;
}

}  // namespace tileweave::cli

#include "cli/bench_decode.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <vector>

#include "cli/command_line.h"
#include "cli/hop_report.h"
#include "cli/open_model.h"
#include "cli/progress_bar.h"
#include "cli/read_rate.h"
#include "cli/version.h"
#include "tileweave/core/error.h"

namespace tileweave::cli {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 30;

/// One way of running the model, with sequences that stand at the context asked for.
class Arm {
 public:
  Arm(const BenchDecodeOptions& options, Mode mode, std::ostream& err) : options_(options) {
    ModelChoice choice = options.choice;
    choice.mode = mode;
    const std::int64_t tokens = options.context + options.new_tokens;
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
    for (std::int64_t i = 0; i < options_.new_tokens; ++i) {
      next_ = decode_step(*model_.decoder, sequences_, next_);
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    return spent.count() / static_cast<double>(options_.new_tokens);
  }

  const LoadedModel& model() const { return model_; }

 private:
  const BenchDecodeOptions& options_;
  LoadedModel model_;
  std::vector<KvCache::SequenceId> sequences_;
  std::vector<std::int32_t> next_;
};

}  // namespace

int bench_decode(const BenchDecodeOptions& options, std::ostream& out, std::ostream& err) {
  require(
      options.batch >= 1 && options.context >= 1 && options.new_tokens >= 1 && options.repeat >= 1,
      "measure decoding", "a batch, context, number of tokens and repeats of at least 1");
  Arm serial(options, Mode::kSerial, err);
  Arm overlap(options, Mode::kOverlap, err);
  const LoadedModel& model = overlap.model();
  ReadRate memory(kReadBytes, model.device->limits().num_sms);
  memory.measure();
  std::vector<double> serial_seconds, overlap_seconds, rates;
  {
    ProgressBar bar(err, "measuring");
    for (std::int64_t i = 0; i < options.repeat; ++i) {
      serial_seconds.push_back(serial.measure());
      overlap_seconds.push_back(overlap.measure());
      rates.push_back(memory.measure());
      bar.update(static_cast<std::size_t>(i + 1), static_cast<std::size_t>(options.repeat));
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
  if (options.form == OutputForm::kJson) {
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
                    {"granularity", name_of(options.choice.granularity)},
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
                     options.context, name_of(options.choice.granularity));
  out << fmt::format("read rate of 1 GiB: {}/s, so at most {:.1f} steps/s\n", bytes_text(rate),
                     ceiling);
  out << fmt::format("{:<8} {:>9} {:>10} {:>20}\n", "mode", "ms/step", "tokens/s",
                     "share of read rate");
  for (const Row& row : rows) {
    out << fmt::format("{:<8} {:>9.2f} {:>10.1f} {:>18.0f} %\n", row.mode, row.seconds * 1e3,
                       batch / row.seconds, 100 / row.seconds / ceiling);
  }
  out << fmt::format("overlap runs at {:.2f} times the speed of serial (medians of {})\n",
                     rows[0].seconds / rows[1].seconds, options.repeat);
  return kSuccess;
}

}  // namespace tileweave::cli

#include "cli/bench_decode_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "cli/bench_nodes.h"
#include "cli/command_line.h"
#include "cli/cuda_machine.h"
#include "cli/hop_report.h"
#include "cli/progress_bar.h"
#include "cli/version.h"
#include "tileweave/core/atomic_file.h"
#include "tileweave/core/error.h"
#include "tileweave/models/decode_loop.h"
#include "tileweave/models/dense_model.h"
#include "tileweave/models/random_fill.h"
#include "tileweave/trace/exposed_time.h"

namespace tileweave::cli {
namespace {

constexpr const char* kBench = "measure decoding";
constexpr std::int64_t kPage = 16;
constexpr std::int64_t kGpuSteps = 64;
constexpr float kCacheSpread = 1;

constexpr const char* kWithoutAttention = "no attn";

struct ArmSpec {
  std::string name;
  StepKnobs knobs;
};

/// One way of running the step, with a plan of its own.
struct Arm {
  std::string name = {};
  StepKnobs knobs;
  std::unique_ptr<DecodeLoop> loop = nullptr;
  std::vector<double> seconds = {};  // per step
  std::string failure = {};          // why there are none, or why they do not count
  std::vector<std::int32_t> ids = {};
  std::vector<std::uint32_t> scores = {};  // bits of the last step's logits
};

enum class Context : std::uint8_t { kFixed, kGrowing };

struct Case {
  Granularity granularity = Granularity::kOps;
  std::int64_t batch = 1;
  Growth tokens;
  Context context = Context::kFixed;

  std::string context_text() const {
    return context == Context::kFixed ? std::to_string(tokens.context)
                                      : fmt::format("{}+{}", tokens.context, tokens.steps);
  }
};

std::vector<ArmSpec> arms_of(const BenchDecodeOptions& options, const StepKnobs& knobs,
                             std::int32_t streams) {
  // Edges are full rather than the mode serial: that one keeps every semaphore, to check the waits.
  StepKnobs serial =
      with_edges(options.serial_knobs.empty() ? knobs : read_knobs(options.serial_knobs),
                 {.kind = EdgeKind::kFull});
  serial.num_streams = 1;
  StepKnobs pdl = with_edges(knobs, {.kind = EdgeKind::kProgrammatic});
  pdl.num_streams = 1;
  std::vector<ArmSpec> arms = {{"serial", serial}, {"pdl", pdl}, {"overlap", knobs}};
  for (std::size_t i = 1; i < options.knobs.size(); ++i) {
    arms.push_back(
        {std::filesystem::path(options.knobs[i]).stem().string(), read_knobs(options.knobs[i])});
  }
  if (options.tile_arm == ExtraArm::kYes) {
    StepKnobs tile =
        with_edges(knobs, {.kind = EdgeKind::kTile, .start = StartRule::kLaunchCompletion});
    tile.num_streams = std::max(2, streams > 0 ? streams : kUsualStreams);
    arms.push_back({"tile", tile});
  }
  if (options.without_attention == ExtraArm::kYes) {
    arms.push_back({kWithoutAttention, knobs});
  }
  return arms;
}

/// Measures all cases of one granularity on one loaded model.
class Bench {
 public:
  Bench(const BenchDecodeOptions& options, LoadedModel& model, double rate)
      : options_(options), model_(model), rate_(rate) {
    // Random numbers all over the pools, so that attention reads what it would read.
    Decoder& decoder = *model_.decoder;
    const KvCache& cache = decoder.cache();
    const auto count = static_cast<std::int64_t>(bytes_of(cache.shape()) / sizeof(BFloat16));
    fill_random_on(decoder.device(), static_cast<BFloat16*>(cache.keys(0)),
                   {.seed = 7, .count = count, .spread = kCacheSpread});
  }

  /// Whether an arm of any case failed.
  bool failed() const { return failed_; }

  Json measure(const Case& which, std::string& table) {
    Decoder& decoder = *model_.decoder;
    const std::vector<KvCache::SequenceId> sequences = claim(which);
    std::vector<std::int32_t> first;
    for (std::int64_t s = 0; s < which.batch; ++s) {
      first.push_back(static_cast<std::int32_t>((s * 7919 + 1) % decoder.config().vocab_size));
    }
    const ChosenKnobs chosen = knobs_of(which);
    const StepKnobs& knobs = chosen.knobs;
    std::vector<Arm> arms;
    // An arm that fails is reported; the others go on.
    const auto attempt = [&](Arm& arm, const auto& what) {
      if (!arm.failure.empty()) return;
      try {
        what();
      } catch (const Error& error) {
        arm.failure = error.what();
        arm.loop.reset();
        for (const KvCache::SequenceId s : sequences) decoder.truncate(s, which.tokens.context);
      }
    };
    for (const ArmSpec& spec : arms_of(options_, knobs, options_.choice.num_streams)) {
      Arm& arm = arms.emplace_back(Arm{.name = spec.name, .knobs = spec.knobs});
      attempt(arm, [&] {
        arm.loop = make_loop(which, spec, Tracing::kOff);
        run_once(arm, which, sequences, first);  // warms up
        arm.seconds.clear();
        keep_results(arm);
      });
    }
    for (std::int64_t i = 0; i < options_.repeat; ++i) {
      for (Arm& arm : arms) {  // in turn
        attempt(arm, [&] { run_once(arm, which, sequences, first); });
      }
    }
    for (Arm& arm : arms) {
      if (arm.name != kWithoutAttention) attempt(arm, [&] { check_results(arm, arms[0]); });
    }
    Json json = report(which, arms, table);
    json["knobs"] = name_of(chosen.source);
    arms.clear();
    Arm traced;
    attempt(traced, [&] { json["operators"] = operators(which, sequences, knobs, first, table); });
    if (!traced.failure.empty()) json["operators_failure"] = traced.failure;
    for (const KvCache::SequenceId sequence : sequences) decoder.remove_sequence(sequence);
    return json;
  }

 private:
  std::vector<KvCache::SequenceId> claim(const Case& which) {
    std::vector<KvCache::SequenceId> sequences;
    for (std::int64_t s = 0; s < which.batch; ++s) {
      sequences.push_back(model_.decoder->add_sequence());
      model_.decoder->cache().extend(sequences.back(), which.tokens.context);
    }
    return sequences;
  }

  ChosenKnobs knobs_of(const Case& which) const {
    if (!options_.knobs.empty()) return {read_knobs(options_.knobs[0]), KnobsSource::kGiven};
    return model_.decoder->knobs_of(decode_shape(which.batch), max_tokens(which));
  }

  static std::int64_t max_tokens(const Case& which) {
    return which.tokens.context + which.tokens.steps + 1;
  }

  std::unique_ptr<DecodeLoop> make_loop(const Case& which, const ArmSpec& spec, Tracing tracing) {
    // The launch order is trusted for the measurement alone: a deadline would end a run in which
    // it did not hold.
    RunOptions run{.submit = options_.choice.submit,
                   .tracing = tracing,
                   .launch_order = LaunchOrder::kTrusted};
    DecodeLoopOptions loop{.run = run,
                           .knobs = spec.knobs,
                           .rows = which.batch,
                           .max_tokens = max_tokens(which),
                           .ring_length = which.tokens.steps};
    if (spec.name == kWithoutAttention) {
      add_bench_kernels(model_.decoder->device());
      loop.rewrite = [](Plan& plan) { replace_attention(plan); };
    }
    return std::make_unique<DecodeLoop>(*model_.decoder, loop);
  }

  static void run_once(Arm& arm, const Case& which,
                       const std::vector<KvCache::SequenceId>& sequences,
                       const std::vector<std::int32_t>& first) {
    const std::int64_t steps = which.tokens.steps;
    arm.loop->start(sequences, first, steps);
    const double seconds = seconds_on_gpu(arm.loop->program(), [&] { arm.loop->enqueue(steps); });
    arm.seconds.push_back(seconds / static_cast<double>(steps));
    arm.ids = arm.loop->wait();
    arm.loop->finish(0);
  }

  static void keep_results(Arm& arm) {
    arm.scores = arm.loop->program().read<std::uint32_t>(arm.loop->outputs().scores);
  }

  static void check_results(Arm& arm, const Arm& reference) {
    const std::vector<std::uint32_t> scores_before = std::move(arm.scores);
    keep_results(arm);
    const bool same = arm.scores == scores_before &&
                      (!reference.failure.empty() ||
                       (arm.ids == reference.ids && arm.scores == reference.scores));
    if (same) return;
    throw Error(kBench,
                fmt::format("the same logits, to the bit, in the arms `{}` and `{}`",
                            reference.name, arm.name),
                "others");
  }

  double kv_bytes(const Case& which) const {
    const KvCacheShape& shape = model_.decoder->cache().shape();
    const double tokens = static_cast<double>(which.tokens.context) +
                          static_cast<double>(which.tokens.steps + 1) / 2;  // on average
    return tokens * static_cast<double>(which.batch) * 2.0 *
           static_cast<double>(shape.layers * shape.row_elements) *
           static_cast<double>(size_of(shape.dtype));
  }

  Json report(const Case& which, const std::vector<Arm>& arms, std::string& table) {
    const auto weights = static_cast<double>(model_.decoder->weights().bytes_per_step());
    const double bytes = weights + kv_bytes(which);
    const double serial = arms[0].failure.empty() ? median(arms[0].seconds) : 0;
    Json rows = Json::array();
    for (const Arm& arm : arms) {
      if (!arm.failure.empty()) {
        failed_ = true;
        table += fmt::format("{:<7} {:>5} {:>9} {:<8} {}\n", name_of(which.granularity),
                             which.batch, which.context_text(), arm.name, arm.failure);
        rows.push_back({{"arm", arm.name}, {"failure", arm.failure}});
        continue;
      }
      const Program& program = arm.loop->program();
      const double seconds = median(arm.seconds);
      const auto nodes = static_cast<double>(program.plan().nodes().size());
      std::map<std::string, std::int64_t> edges;
      for (const EdgeReport& edge : program.verdict().edges) ++edges[name_of(edge.kind)];
      const double share = bytes / rate_ / seconds;
      const double per_node = seconds / nodes * 1e6;
      const double above = (seconds - bytes / rate_) / nodes * 1e6;
      table += fmt::format(
          "{:<7} {:>5} {:>9} {:<8} {:>9.4f} {:>8.3f} {:>8.1f} {:>7.3f} {:>6.0f} {:>8.2f} {:>8.2f} "
          "{:>5}\n",
          name_of(which.granularity), which.batch, which.context_text(), arm.name, seconds * 1e3,
          bytes * 1e-9, share * 100, serial / seconds, nodes, per_node, above,
          program.verdict().num_downgrades());
      rows.push_back(
          {{"arm", arm.name},
           {"ms_per_step", seconds * 1e3},
           {"ms_lowest", *std::min_element(arm.seconds.begin(), arm.seconds.end()) * 1e3},
           {"share_of_streaming_rate", share},
           {"gain_over_serial", serial / seconds},
           {"nodes", program.plan().nodes().size()},
           {"us_per_node", per_node},
           {"us_per_node_above_streaming", above},
           {"edges", edges},
           {"downgrades", program.verdict().num_downgrades()},
           {"knobs", Json::parse(to_json(arm.knobs))}});
    }
    Json json = {{"granularity", name_of(which.granularity)},
                 {"batch", which.batch},
                 {"context", which.tokens.context},
                 {"steps", which.tokens.steps},
                 {"grows", which.context == Context::kGrowing},
                 {"weight_bytes", weights},
                 {"kv_bytes", kv_bytes(which)},
                 {"arms", rows}};
    report_attention(arms, json, table);
    return json;
  }

  /// What attention adds to a step of `overlap`, per layer.
  void report_attention(const std::vector<Arm>& arms, Json& json, std::string& table) const {
    const auto find = [&](const char* name) -> const Arm* {
      for (const Arm& arm : arms) {
        if (arm.name == name && arm.failure.empty()) return &arm;
      }
      return nullptr;
    };
    const Arm* const with = find("overlap");
    const Arm* const without = find(kWithoutAttention);
    if (with == nullptr || without == nullptr) return;
    const double us = (median(with->seconds) - median(without->seconds)) * 1e6 /
                      static_cast<double>(model_.decoder->config().num_layers);
    json["attention_us_per_layer"] = us;
    table += fmt::format("        attention exposed: {:.2f} us per layer\n", us);
  }

  /// A step of `overlap` by operator, in a run of its own with tracing on.
  Json operators(const Case& which, const std::vector<KvCache::SequenceId>& sequences,
                 const StepKnobs& knobs, const std::vector<std::int32_t>& first,
                 std::string& table) {
    const auto loop = make_loop(which, {"overlap", knobs}, Tracing::kOn);
    const auto run = [&](std::int64_t steps) {
      loop->start(sequences, first, steps);
      loop->enqueue(steps);
      loop->finish(0);
      return loop->program().take_trace();
    };
    run(std::min<std::int64_t>(2, which.tokens.steps));  // warms up
    const ExposedTime time = exposed_time(run(1));
    Json json = Json::array();
    table += fmt::format("        exposed, traced step of {:.1f} us:",
                         static_cast<double>(time.makespan) / 1e3);
    for (const OperatorTime& op : time.ranks.at(0).operators) {
      table += fmt::format(" {} {:.1f}", op.op, static_cast<double>(op.exposed) / 1e3);
      json.push_back({{"op", op.op},
                      {"nodes", op.nodes},
                      {"exposed_ns", op.exposed},
                      {"waiting_ns", op.waiting},
                      {"busy_ns", op.busy}});
    }
    table += "\n";
    return json;
  }

  const BenchDecodeOptions& options_;
  LoadedModel& model_;
  double rate_;
  bool failed_ = false;
};

}  // namespace

int bench_decode_gpu(const BenchDecodeOptions& asked, const ModelDescription& description,
                     std::ostream& out, std::ostream& err) {
  BenchDecodeOptions options = asked;
  if (options.steps == 0) options.steps = kGpuSteps;
  if (options.granularities.empty()) {
    options.granularities = {Granularity::kOps, Granularity::kStages};
  }
  for (const std::string& file : options.knobs) read_knobs(file);
  if (!options.serial_knobs.empty()) read_knobs(options.serial_knobs);
  const std::string why_not = why_not_on_gpu(description.config);
  require(why_not.empty(), kBench, why_not.c_str());
  open_cuda_device();  // or says why there is none
  // Before the model takes the memory.
  const CudaReadRate rate = measure_cuda_read_rate();

  const std::int64_t batch = *std::max_element(options.batches.begin(), options.batches.end());
  std::vector<Case> shapes;
  std::int64_t tokens = 0;
  const auto add_shapes = [&](const Growth& growth, Context kind) {
    tokens = std::max(tokens, growth.context + growth.steps + 1);
    for (const std::int64_t b : options.batches) shapes.push_back({{}, b, growth, kind});
  };
  for (const std::int64_t c : options.contexts) add_shapes({c, options.steps}, Context::kFixed);
  for (const Growth& growth : options.growths) add_shapes(growth, Context::kGrowing);
  std::string table = fmt::format(
      "{:<7} {:>5} {:>9} {:<8} {:>9} {:>8} {:>8} {:>7} {:>6} {:>8} "
      "{:>8} {:>5}\n",
      "", "batch", "context", "arm", "ms/step", "GB", "share %", "gain", "nodes", "us/node",
      "above", "down");
  Json cases = Json::array();
  std::string machine;
  std::int32_t num_sms = 0;
  bool failed = false;
  for (const Granularity granularity : options.granularities) {
    ModelChoice choice = options.choice;
    choice.device = "cuda";
    choice.granularity = granularity;
    LoadedModel model = load_model(choice, description,
                                   {.page_size = kPage,
                                    .max_tokens = tokens,
                                    .cache_tokens = batch * (ceil_div(tokens, kPage) + 1) * kPage},
                                   err);
    machine = model.device->limits().name;
    num_sms = model.device->limits().num_sms;
    Bench bench(options, model, rate.best);
    ProgressBar bar(err, "measuring");
    std::size_t done = 0;
    for (Case shape : shapes) {
      shape.granularity = granularity;
      cases.push_back(bench.measure(shape, table));
      bar.update(++done, shapes.size());
    }
    failed = failed || bench.failed();
  }
  Json rates = Json::array();
  for (const CudaReadRate::Row& row : rate.rows) {
    rates.push_back({{"blocks", row.blocks}, {"bytes_per_second", row.bytes_per_second}});
  }
  const Json json = {{"verb", "bench decode"},
                     {"version", kVersion},
                     {"model", description.directory},
                     {"device", "cuda"},
                     {"machine", machine},
                     {"sms", num_sms},
                     {"submit", name_of(options.choice.submit)},
                     {"steps", options.steps},
                     {"repeat", options.repeat},
                     {"streaming_rate", rate.best},
                     {"streaming_rates", rates},
                     {"cases", cases}};
  if (!options.json_file.empty()) write_file_atomically(options.json_file, to_text(json));
  if (options.form == OutputForm::kJson) {
    out << to_text(json);
    return failed ? kFailure : kSuccess;
  }
  out << fmt::format(
      "{} on {}, {} SMs; streaming rate {:.2f} TB/s; medians of {} runs of {} steps\n",
      description.directory, machine, num_sms, rate.best * 1e-12, options.repeat, options.steps);
  out << table;
  out << "share: of the streaming rate, weights and keys and values read once; above: us per node "
         "beyond it; arms without a failure gave the same logits to the bit\n";
  return failed ? kFailure : kSuccess;
}

}  // namespace tileweave::cli

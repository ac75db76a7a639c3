#include "tileweave/models/plan_tuner.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/models/decode_loop.h"

namespace tileweave {
namespace {

constexpr const char* kTune = "tune decode steps";

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Sequences that hold `context` tokens; forgotten with the object.
class Sequences {
 public:
  Sequences(Decoder& decoder, const PlanTuneOptions& options)
      : decoder_(decoder), context_(options.context) {
    const std::int64_t vocabulary = decoder.config().vocab_size;
    try {
      for (std::int64_t s = 0; s < options.rows; ++s) {
        ids_.push_back(decoder.add_sequence());
        std::vector<std::int32_t> prompt;
        for (std::int64_t i = 0; i < options.context; ++i) {
          prompt.push_back(static_cast<std::int32_t>((s * 7919 + i * 104'729 + 1) % vocabulary));
        }
        prefill(decoder, ids_.back(), prompt);
        next_.push_back(prompt.back());
      }
    } catch (...) {
      forget();
      throw;
    }
  }
  ~Sequences() { forget(); }
  Sequences(const Sequences&) = delete;
  Sequences& operator=(const Sequences&) = delete;

  const std::vector<KvCache::SequenceId>& ids() const { return ids_; }
  const std::vector<std::int32_t>& next() const { return next_; }
  void rewind() const {
    for (const KvCache::SequenceId id : ids_) decoder_.truncate(id, context_);
  }

 private:
  void forget() noexcept {
    for (const KvCache::SequenceId id : ids_) decoder_.remove_sequence(id);
  }

  Decoder& decoder_;
  std::int64_t context_;
  std::vector<KvCache::SequenceId> ids_;
  std::vector<std::int32_t> next_;
};

/// What an arm computes; the same in every arm.
struct Result {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint32_t> scores;  // bits of the last step's logits

  friend bool operator==(const Result&, const Result&) = default;
};

/// One arm and its times.
class Runner {
 public:
  Runner(PlanArm& arm, const Sequences& sequences) : arm_(arm), sequences_(sequences) {}

  void make(Decoder& decoder, const PlanTuneOptions& options) {
    steps_ = options.steps;
    attempt([&] {
      RunOptions run = decoder.options().run;
      run.tracing = Tracing::kOff;
      loop_ =
          std::make_unique<DecodeLoop>(decoder, DecodeLoopOptions{.run = run,
                                                                  .knobs = arm_.knobs,
                                                                  .rows = options.rows,
                                                                  .max_tokens = tokens_of(options),
                                                                  .ring_length = options.steps});
      run_once();  // warms up
      seconds_.clear();
    });
  }

  void measure() {
    attempt([&] { run_once(); });
  }

  /// Against the default's; both have run as often.
  void compare(const Result& expected) {
    attempt([&] {
      require(result_ == expected, kTune,
              "the default's tokens and logits, to the bit (please report this)", "others");
    });
  }

  void finish() {
    if (arm_.failure.empty()) arm_.seconds = median_of(seconds_);
  }

  const Result& result() const { return result_; }

 private:
  template <class What>
  void attempt(const What& what) {
    if (!arm_.failure.empty()) return;
    try {
      what();
    } catch (const Error& error) {
      arm_.failure = error.what();
      loop_.reset();
      sequences_.rewind();
    }
  }

  void run_once() {
    loop_->start(sequences_.ids(), sequences_.next(), steps_);
    const auto start = std::chrono::steady_clock::now();
    loop_->enqueue(steps_);
    std::vector<std::int32_t> tokens = loop_->wait();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    seconds_.push_back(spent.count() / static_cast<double>(steps_));
    result_ = {.tokens = std::move(tokens),
               .scores = loop_->program().read<std::uint32_t>(loop_->outputs().scores)};
    loop_->finish(0);
  }

  PlanArm& arm_;
  const Sequences& sequences_;
  std::int64_t steps_ = 0;
  std::unique_ptr<DecodeLoop> loop_;
  std::vector<double> seconds_;
  Result result_;
};

/// The same with one edge for some operators, and streams for them to overlap on.
StepKnobs with_tile_edges(StepKnobs knobs, std::initializer_list<StepOp> ops, StartRule start) {
  for (const StepOp op : ops) knobs.at(op).edge = EdgePolicy{EdgeKind::kTile, start};
  knobs.num_streams = 2;
  return knobs;
}

constexpr StepOp kProducts[] = {StepOp::kQkv, StepOp::kO, StepOp::kGateUp, StepOp::kDown,
                                StepOp::kHead};

}  // namespace

PlanTuning tune_plan(Decoder& decoder, std::vector<PlanArm> arms, const PlanTuneOptions& options) {
  require(!arms.empty() && options.rows >= 1 && options.context >= 1 && options.steps >= 1 &&
              options.repeat >= 1,
          kTune, "an arm, a row, a token of context, a step and a measurement");
  PlanTuning tuning{.arms = std::move(arms)};
  const Sequences sequences(decoder, options);
  std::vector<std::unique_ptr<Runner>> runners;
  const std::size_t in_all = tuning.arms.size() * static_cast<std::size_t>(options.repeat + 1);
  std::size_t done = 0;
  const auto tell = [&] {
    if (options.progress) options.progress(++done, in_all);
  };
  for (PlanArm& arm : tuning.arms) {
    runners.push_back(std::make_unique<Runner>(arm, sequences));
    runners.back()->make(decoder, options);
    const std::string& failure = tuning.arms[0].failure;
    if (!failure.empty()) throw Error(kTune, "defaults that run", "a failure: " + failure);
    tell();
  }
  for (std::int64_t i = 0; i < options.repeat; ++i) {
    for (const auto& runner : runners) {  // in turn
      runner->measure();
      tell();
    }
  }
  for (const auto& runner : runners) {
    runner->compare(runners[0]->result());
    runner->finish();
  }
  const PlanArm& usual = tuning.arms[0];
  if (!usual.failure.empty())
    throw Error(kTune, "defaults that run", "a failure: " + usual.failure);
  for (std::size_t i = 1; i < tuning.arms.size(); ++i) {
    const PlanArm& arm = tuning.arms[i];
    const bool gains = arm.seconds < usual.seconds * (1 - options.least_gain);
    if (arm.failure.empty() && gains && arm.seconds < tuning.arms[tuning.chosen].seconds) {
      tuning.chosen = i;
    }
  }
  return tuning;
}

std::vector<PlanArm> plan_arms(Decoder& decoder, const StepShape& shape) {
  const StepKnobs usual = usual_knobs(decoder.device(), decoder.config(), shape);
  std::vector<PlanArm> arms = {{.name = "default", .knobs = usual}};
  const auto add = [&](const char* name, const StepKnobs& knobs) {
    arms.push_back({.name = name, .knobs = knobs});
  };
  const auto on_streams = [&](std::int32_t count) {
    StepKnobs knobs = usual;
    knobs.num_streams = count;
    return knobs;
  };
  if (decoder.context().form.data_tiles == DataTiles::kFine) {
    add("1 stream", on_streams(1));
    add("2 streams", on_streams(2));
    StepKnobs programmatic = with_edges(on_streams(1), {.kind = EdgeKind::kProgrammatic});
    add("programmatic", programmatic);
    return arms;
  }
  add("2 streams", on_streams(2));
  add("tile: attention", with_tile_edges(usual, {StepOp::kAttention}, StartRule::kNone));
  add("tile: small ones",
      with_tile_edges(usual,
                      {StepOp::kEmbedding, StepOp::kNorm, StepOp::kQkNorm, StepOp::kRope,
                       StepOp::kAttention, StepOp::kSiluMul, StepOp::kDraw},
                      StartRule::kNone));
  add("tile: counted", with_edges(on_streams(2), {EdgeKind::kTile, StartRule::kWaitAll}));
  StepKnobs two_blocks = usual;
  for (const StepOp op : kProducts) two_blocks.at(op).blocks_per_sm = 2;
  add("2 blocks per SM", two_blocks);
  for (const std::int64_t buffers : {1, 2}) {
    StepKnobs knobs = usual;
    knobs.at(StepOp::kAttention).buffers = buffers;
    add(buffers == 1 ? "1 buffer" : "2 buffers", knobs);
  }
  return arms;
}

std::map<StepOp, SkinnyGemmProblem> step_products(Decoder& decoder, std::int64_t rows) {
  const StepContext& context = decoder.context();
  if (context.form.matrices != MatrixLayout::kPacked || rows > context.decode_rows) return {};
  const bool fuses = decoder.options().granularity == Granularity::kStages;
  const LayerWeights& layer = decoder.weights().layers.at(0);
  const SkinnyKernel kernel = best_products(decoder.device().limits());
  const auto problem = [&](const Weight& weight, bool norm, bool gated) {
    return SkinnyGemmProblem{.m = rows,
                             .n = weight.shape[0],
                             .k = weight.shape[1],
                             .gated = gated,
                             .norm = norm,
                             .kernel = kernel};
  };
  return {{StepOp::kQkv, problem(layer.qkv, fuses, false)},
          {StepOp::kO, problem(layer.o, false, false)},
          {StepOp::kGateUp, problem(layer.gate_up, fuses, fuses)},
          {StepOp::kDown, problem(layer.down, false, false)},
          {StepOp::kHead, problem(decoder.weights().head, fuses, false)}};
}

StepKnobs with_cut(StepKnobs knobs, StepOp op, const SkinnyGemmKnobs& cut) {
  OpKnobs& own = knobs.at(op);
  own.blocks_per_sm = cut.blocks_per_sm;
  own.strips_per_work = cut.strips_per_work;
  own.split_k = cut.split_k;
  own.stages = cut.stages;
  own.window = cut.window;
  return knobs;
}

}  // namespace tileweave

// Decoder: a loaded model that runs steps, one verified plan per shape, replayed.
//
//   Decoder decoder(*device, config, load_weights(*device, checkpoint, config), {});
//   const auto s = decoder.add_sequence();
//   const StepResult r = decoder.step({.parts = {{s, ids}}, .head = Head::kArgmax});
//
// A step takes new tokens of any number of sequences, whole prompts or parts of them beside single
// decode tokens, and appends them to the KV cache. The bits of a sequence's results depend on its
// own tokens alone: not on the batch, on how its prompt was cut, or on the mode (on a GPU up to 16
// rows; docs/decode_on_a_gpu.md on more). A step that fails (Error) leaves every sequence as it
// was. One host thread at a time; the device must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tileweave/kernels/sampling/sampling_params.h"
#include "tileweave/models/checkpoint/config.h"
#include "tileweave/models/kv_cache.h"
#include "tileweave/models/model_weights.h"
#include "tileweave/models/plan_cache.h"
#include "tileweave/models/step_batch.h"
#include "tileweave/models/step_builder.h"
#include "tileweave/runtime/program.h"

namespace tileweave {

class DecodeLoop;

/// Where greedy replies are made by a DecodeLoop, not step by step.
enum class LoopUse : std::uint8_t { kOnGpu, kAlways, kNever };

/// Streams of a plan where neither options nor knobs name a number.
inline constexpr std::int32_t kUsualStreams = 3;

struct DecoderOptions {
  RunOptions run = {};
  Granularity granularity = Granularity::kOps;
  std::int32_t num_streams = 0;  // of all plans, before knobs that are not given; 0: as they say
  std::int64_t page_size = 16;
  std::int64_t max_tokens = 0;    // of one sequence; 0: what the model was made for
  std::int64_t cache_tokens = 0;  // of all sequences; 0: max_tokens
  std::int64_t max_rows = 0;      // tokens of one step; 0: as the device's numeric form says
  /// Of every step; nothing: those in `tuned`, else usual_knobs.
  std::optional<StepKnobs> knobs = std::nullopt;
  /// Knobs that were measured for decode steps; null: none. Must outlive the decoder.
  TuneCache* tuned = nullptr;
  LoopUse loops = LoopUse::kOnGpu;
  /// On a GPU; kVendor wants weights that were made for it.
  WideProducts wide_products = WideProducts::kOwn;
};

/// Which rows the head sees: the last of every part, or all.
enum class OutputRows : std::uint8_t { kLast, kEvery };

/// How a part's next token is drawn (Head::kSample).
struct Draw {
  SamplingParams params;
  std::span<const std::int32_t> history;  // tokens so far, for the repetition penalty
};

struct StepRequest {
  std::vector<StepPart> parts;
  Head head = Head::kArgmax;
  OutputRows outputs = OutputRows::kLast;
  std::vector<Draw> draws = {};  // one per part, with Head::kSample
};

struct StepResult {
  std::vector<std::int32_t> next_ids;  // one per part; with kEvery one per row
  std::vector<float> logits;           // (parts or rows, vocabulary)
};

class Decoder {
 public:
  /// Adds the kernels to the device. Throws Error for limits that the model does not allow.
  Decoder(Device& device, const ModelConfig& config, ModelWeights weights,
          const DecoderOptions& options = {});
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  const ModelConfig& config() const { return config_; }
  const ModelWeights& weights() const { return weights_; }
  const DecoderOptions& options() const { return options_; }

  KvCache::SequenceId add_sequence() { return cache_.add(); }
  void remove_sequence(KvCache::SequenceId sequence) { cache_.remove(sequence); }
  /// Forgets tokens from `length` on, so that others may follow there.
  void truncate(KvCache::SequenceId sequence, std::int64_t length) {
    cache_.truncate(sequence, length);
  }
  std::int64_t length(KvCache::SequenceId sequence) const { return cache_.length(sequence); }

  /// Whether replies are to be made by decode_loop().
  bool uses_loops() const;
  /// A loop for that many sequences or more, made at its first use.
  DecodeLoop& decode_loop(std::int64_t sequences);

  // For what runs steps of its own over this decoder's weights and cache (DecodeLoop).
  Device& device() { return device_; }
  KvCache& cache() { return cache_; }
  const StepContext& context() const { return context_; }
  /// What a step of this shape runs with; `max_tokens` of a sequence, 0: the decoder's.
  ChosenKnobs knobs_of(const StepShape& shape, std::int64_t max_tokens = 0) const;

  struct Step {
    StepInputs inputs;
    StepOutputs outputs;
    std::unique_ptr<Program> program;
  };
  struct StepOptions {
    RunOptions run = {};
    std::int64_t max_tokens = 0;                    // of a sequence; 0: the decoder's limit
    std::optional<StepKnobs> knobs = std::nullopt;  // nothing: knobs_of()
    std::function<void(Plan&)> rewrite = nullptr;   // before it is verified
  };
  /// A step of its own, verified (throws Error). Cached knobs that make no plan give way to the
  /// defaults.
  Step make_step(const StepShape& shape, const StepOptions& options);

  /// Throws Error, naming it, for an id that is not in the vocabulary, a sequence that gets too
  /// long, too many rows, or a run that failed.
  StepResult step(const StepRequest& request);

  /// The program of a shape, made at its first use (verified; throws Error).
  Program& program(const StepShape& shape);
  /// Records of the last step (tracing on).
  const Trace& last_trace() const;

 private:
  PlanQuestion question_of(const StepShape& shape, std::int64_t max_tokens) const;
  Step& step_of(const StepShape& shape);
  void check(const StepRequest& request) const;
  StepShape shape_of(const StepRequest& request) const;
  void write_inputs(Step& step, const StepShape& shape, const StepRequest& request);
  StepResult read_outputs(Step& step, std::size_t count) const;

  Device& device_;
  ModelConfig config_;
  ModelWeights weights_;
  DecoderOptions options_;
  KvCache cache_;
  StepContext context_;
  std::map<StepShape, Step> steps_;
  std::optional<Trace> last_trace_;
  std::map<std::int64_t, std::unique_ptr<DecodeLoop>> loops_;  // by rows
};

/// Appends `ids` to a sequence, in as many steps as they need.
void prefill(Decoder& decoder, KvCache::SequenceId sequence, std::span<const std::int32_t> ids);

/// Appends `ids[i]` to `sequences[i]`, all in one step; returns the most likely next token of each.
std::vector<std::int32_t> decode_step(Decoder& decoder,
                                      std::span<const KvCache::SequenceId> sequences,
                                      std::span<const std::int32_t> ids);

/// Throws Error naming an id that the model's vocabulary does not have.
void require_in_vocabulary(std::span<const std::int32_t> ids, const ModelConfig& config);

/// Options with every 0 replaced; throws Error for limits that the model does not allow.
DecoderOptions resolved(DecoderOptions options, const ModelConfig& config,
                        const NumericForm& form = {});
/// The pools that `resolved` options ask for.
KvCacheShape cache_shape(const DecoderOptions& options, const ModelConfig& config,
                         const NumericForm& form = {});

}  // namespace tileweave

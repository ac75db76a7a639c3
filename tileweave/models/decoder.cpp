#include "tileweave/models/decoder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/kernels/vendor/vendor_gemm.h"
#include "tileweave/models/decode_loop.h"
#include "tileweave/models/dense_model.h"

namespace tileweave {
namespace {

constexpr const char* kStep = "run a step of the model";

std::int64_t num_rows(const StepRequest& request) {
  std::int64_t rows = 0;
  for (const StepPart& part : request.parts) rows += static_cast<std::int64_t>(part.ids.size());
  return rows;
}

}  // namespace

void prefill(Decoder& decoder, KvCache::SequenceId sequence, std::span<const std::int32_t> ids) {
  const auto rows = static_cast<std::size_t>(decoder.options().max_rows);
  for (std::size_t at = 0; at < ids.size(); at += rows) {
    decoder.step({.parts = {{sequence, ids.subspan(at, std::min(rows, ids.size() - at))}},
                  .head = Head::kNone});
  }
}

std::vector<std::int32_t> decode_step(Decoder& decoder,
                                      std::span<const KvCache::SequenceId> sequences,
                                      std::span<const std::int32_t> ids) {
  StepRequest request;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    request.parts.push_back({sequences[i], ids.subspan(i, 1)});
  }
  return decoder.step(request).next_ids;
}

void require_in_vocabulary(std::span<const std::int32_t> ids, const ModelConfig& config) {
  for (const std::int32_t id : ids) {
    if (id >= 0 && id < config.vocab_size) continue;
    throw Error("look up a token",
                "token ids from 0 to " + std::to_string(config.vocab_size - 1) +
                    ", as the vocabulary has them",
                std::to_string(id));
  }
}

DecoderOptions resolved(DecoderOptions options, const ModelConfig& config,
                        const NumericForm& form) {
  const std::int64_t limit = config.max_position_embeddings;
  if (options.max_tokens == 0) options.max_tokens = limit;
  require(
      options.max_tokens >= 1 && options.max_tokens <= limit, "open model",
      ("a sequence limit between 1 and the model's " + std::to_string(limit) + " tokens").c_str(),
      std::to_string(options.max_tokens));
  if (options.cache_tokens == 0) options.cache_tokens = options.max_tokens;
  require(options.cache_tokens >= 1, "open model", "a KV cache of at least one token",
          std::to_string(options.cache_tokens));
  if (options.max_rows == 0) options.max_rows = form.most_rows;
  require(options.page_size >= 1 && options.max_rows >= 1, "open model",
          "at least one token per page and one row per step");
  options.max_rows = row_bucket_of(options.max_rows);
  if (form.row_limit > 0) options.max_rows = std::min(options.max_rows, form.row_limit);
  return options;
}

KvCacheShape cache_shape(const DecoderOptions& options, const ModelConfig& config,
                         const NumericForm& form) {
  return {.layers = config.num_layers,
          .row_elements = config.num_kv_heads * config.head_dim,
          .num_pages = ceil_div(options.cache_tokens, options.page_size),
          .page_size = options.page_size,
          .dtype = form.cache};
}

Decoder::Decoder(Device& device, const ModelConfig& config, ModelWeights weights,
                 const DecoderOptions& options)
    : device_(device),
      config_(config),
      weights_(std::move(weights)),
      options_(resolved(options, config, numeric_form(device.name()))),
      cache_(device, cache_shape(options_, config, numeric_form(device.name()))),
      context_{.config = &config_,
               .weights = &weights_,
               .cache = &cache_,
               .max_pages = ceil_div(options_.max_tokens, options_.page_size),
               .max_history = options_.max_tokens,
               .limits = device.limits(),
               .num_streams = kUsualStreams,
               .granularity = options_.granularity,
               .form = numeric_form(device.name()),
               .wide_products = options_.wide_products} {
  if (context_.form.matrices == MatrixLayout::kPacked) {
    context_.decode_rows = rows_that_fit(config_, weights_, options_.granularity, device.limits());
    const SkinnyKernel products =
        options_.knobs.value_or(StepKnobs{}).products.value_or(best_products(device.limits()));
    if (options_.wide_products == WideProducts::kOwn &&
        !has_wide_products(device.limits(), products)) {
      options_.max_rows = std::min(options_.max_rows, context_.decode_rows);
    }
  }
  add_dense_model_kernels(device);
  if (options_.wide_products == WideProducts::kVendor) {
    require(context_.form.matrices == MatrixLayout::kPacked, "open model",
            "a GPU for wide products of the vendor", "`" + device.name() + "`");
    vendor_gemm_library();
    add_vendor_gemm(device);
  }
}

Decoder::~Decoder() = default;

bool Decoder::uses_loops() const {
  if (options_.run.tracing == Tracing::kOn || options_.loops == LoopUse::kNever) return false;
  return options_.loops == LoopUse::kAlways || device_.name() == "cuda";
}

DecodeLoop& Decoder::decode_loop(std::int64_t sequences) {
  std::unique_ptr<DecodeLoop>& loop = loops_[bucket_of(sequences)];
  if (loop == nullptr) {
    loop = std::make_unique<DecodeLoop>(
        *this, DecodeLoopOptions{.run = options_.run, .rows = bucket_of(sequences)});
  }
  return *loop;
}

void Decoder::check(const StepRequest& request) const {
  require(!request.parts.empty(), kStep, "at least one token");
  require(request.head != Head::kSample || request.draws.size() == request.parts.size(), kStep,
          "one way to draw per part");
  for (std::size_t i = 0; i < request.parts.size(); ++i) {
    const StepPart& part = request.parts[i];
    require(!part.ids.empty(), kStep, "at least one token in every part");
    for (std::size_t j = 0; j < i; ++j) {
      require(request.parts[j].sequence != part.sequence, kStep, "one part per sequence");
    }
    require_in_vocabulary(part.ids, config_);
    const std::int64_t length =
        cache_.length(part.sequence) + static_cast<std::int64_t>(part.ids.size());
    if (length > options_.max_tokens) {
      throw Error(kStep, "a sequence of at most " + std::to_string(options_.max_tokens) + " tokens",
                  std::to_string(length));
    }
  }
  const std::int64_t rows = num_rows(request);
  if (rows > options_.max_rows) {
    throw Error(kStep, "at most " + std::to_string(options_.max_rows) + " tokens in one step",
                std::to_string(rows));
  }
}

StepShape Decoder::shape_of(const StepRequest& request) const {
  const std::int64_t rows = num_rows(request);
  const auto parts = static_cast<std::int64_t>(request.parts.size());
  StepShape shape{
      .rows = row_bucket_of(rows), .sequences = row_bucket_of(parts), .head = request.head};
  const bool every = request.outputs == OutputRows::kEvery || rows == parts;
  shape.outputs = every ? shape.rows : shape.sequences;
  shape.decode = rows == parts;
  return shape;
}

PlanQuestion Decoder::question_of(const StepShape& shape, std::int64_t max_tokens) const {
  return {.config = &config_,
          .granularity = options_.granularity,
          .rows = shape.rows,
          .tokens = max_tokens > 0 ? max_tokens : options_.max_tokens,
          .wide_products = options_.wide_products};
}

ChosenKnobs Decoder::knobs_of(const StepShape& shape, std::int64_t max_tokens) const {
  if (options_.knobs) return {*options_.knobs, KnobsSource::kGiven};
  ChosenKnobs chosen = choose_knobs(device_, question_of(shape, max_tokens), shape, options_.tuned);
  if (options_.num_streams > 0) chosen.knobs.num_streams = options_.num_streams;
  return chosen;
}

Decoder::Step Decoder::make_step(const StepShape& shape, const StepOptions& options) {
  StepContext context = context_;
  if (options.max_tokens > 0) context.max_pages = ceil_div(options.max_tokens, options_.page_size);
  const auto make = [&](const StepKnobs& knobs) {
    StepBuilder builder(context, shape, knobs);
    const StepOutputs outputs = dense_step(builder);
    if (options.rewrite) options.rewrite(builder.plan());
    return Step{.inputs = builder.inputs(),
                .outputs = outputs,
                .program = std::make_unique<Program>(device_, builder.plan(), options.run)};
  };
  if (options.knobs) return make(*options.knobs);
  const ChosenKnobs chosen = knobs_of(shape, options.max_tokens);
  if (chosen.source != KnobsSource::kCached) return make(chosen.knobs);
  try {
    return make(chosen.knobs);
  } catch (const Error& error) {
    StepKnobs usual = usual_knobs(device_, config_, shape);
    if (options_.num_streams > 0) usual.num_streams = options_.num_streams;
    Step step = make(usual);  // where this fails too, the cached knobs are not what is wrong
    refuse_plan(device_, question_of(shape, chosen.tokens), error.what(), *options_.tuned);
    return step;
  }
}

Decoder::Step& Decoder::step_of(const StepShape& shape) {
  const auto known = steps_.find(shape);
  if (known != steps_.end()) return known->second;
  return steps_.emplace(shape, make_step(shape, {.run = options_.run})).first->second;
}

Program& Decoder::program(const StepShape& shape) {
  return *step_of(shape).program;
}

void Decoder::write_inputs(Step& step, const StepShape& shape, const StepRequest& request) {
  const StepBatch batch = step_batch(shape, cache_, context_.max_pages, request.parts);
  Program& program = *step.program;
  const StepInputs& in = step.inputs;
  program.write(in.ids, batch.ids);
  program.write(in.positions, batch.positions);
  program.write(in.slots, batch.slots);
  program.write(in.sequence_of_row, batch.sequence_of_row);
  program.write(in.first_row, batch.first_row);
  program.write(in.past, batch.past);
  program.write(in.page_table, batch.page_table);
  if (in.output_rows != kNoTensor) program.write(in.output_rows, batch.output_rows);
  if (shape.head != Head::kSample) return;
  SampleInputs draws(shape.outputs, context_.max_history);
  for (std::size_t i = 0; i < request.parts.size(); ++i) {
    draws.set(static_cast<std::int64_t>(i), request.draws[i].params,
              cache_.length(request.parts[i].sequence), request.draws[i].history);
  }
  program.write(in.temperature, draws.temperature);
  program.write(in.top_p, draws.top_p);
  program.write(in.min_p, draws.min_p);
  program.write(in.repetition_penalty, draws.repetition_penalty);
  program.write(in.top_k, draws.top_k);
  program.write(in.seed, draws.seed);
  program.write(in.draw_position, draws.position);
  program.write(in.history, draws.history);
  program.write(in.history_length, draws.history_length);
}

StepResult Decoder::read_outputs(Step& step, std::size_t count) const {
  StepResult result;
  if (step.outputs.next_ids != kNoTensor) {
    result.next_ids = step.program->read<std::int32_t>(step.outputs.next_ids);
    result.next_ids.resize(count);
  }
  if (step.outputs.logits != kNoTensor) {
    result.logits = step.program->read<float>(step.outputs.logits);
    result.logits.resize(count * static_cast<std::size_t>(config_.vocab_size));
  }
  return result;
}

StepResult Decoder::step(const StepRequest& request) {
  check(request);
  const StepShape shape = shape_of(request);
  Step& step = step_of(shape);
  std::size_t claimed = 0;
  try {
    for (const StepPart& part : request.parts) {
      cache_.extend(part.sequence, static_cast<std::int64_t>(part.ids.size()));
      ++claimed;
    }
    write_inputs(step, shape, request);
    step.program->run();
    step.program->synchronize();
    if (options_.run.tracing == Tracing::kOn) last_trace_ = step.program->take_trace();
    const bool every = request.outputs == OutputRows::kEvery;
    return read_outputs(step,
                        every ? static_cast<std::size_t>(num_rows(request)) : request.parts.size());
  } catch (...) {
    for (std::size_t i = 0; i < claimed; ++i) {
      const StepPart& part = request.parts[i];
      cache_.truncate(part.sequence,
                      cache_.length(part.sequence) - static_cast<std::int64_t>(part.ids.size()));
    }
    if (step.program->poisoned()) step.program->recover();  // the next step may go on
    throw;
  }
}

const Trace& Decoder::last_trace() const {
  require(last_trace_.has_value(), "read the trace", "a step that has run with tracing on");
  return *last_trace_;
}

}  // namespace tileweave

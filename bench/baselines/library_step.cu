#include "bench/baselines/library_step.cuh"

#include <algorithm>

#include "tileweave/core/coord.h"
#include "tileweave/core/error.h"
#include "tileweave/kernels/activation/silu_mul.h"
#include "tileweave/kernels/attention/decode_attention.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/kernels/embedding/embedding.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/norm/rms_norm_residual.h"
#include "tileweave/kernels/sampling/add_sampling.h"
#include "tileweave/kernels/sampling/advance.h"
#include "tileweave/kernels/sampling/argmax.h"
#include "tileweave/models/random_fill.h"
#include "tileweave/runtime/cuda/cuda_status.cuh"

namespace tileweave::bench {
namespace {

constexpr std::int64_t kPage = 16;
constexpr std::int64_t kRingLength = 64;        // of tokens that nobody reads
constexpr std::int64_t kWideColumnUnit = 2048;  // as StepBuilder cuts wide rows
constexpr std::size_t kMostTuneWeights = 32;

KvCacheShape cache_shape(const ModelConfig& config, const LibraryStepOptions& options) {
  return {.layers = config.num_layers,
          .row_elements = config.num_kv_heads * config.head_dim,
          .num_pages = options.batch * ceil_div(options.max_tokens, kPage),
          .page_size = kPage,
          .dtype = DType::kBF16};
}

}  // namespace

LibraryStep::LibraryStep(Device& device, const CublasLt& library, const ModelConfig& config,
                         const ModelWeights& weights, const LibraryStepOptions& options)
    : device_(device),
      library_(library),
      config_(config),
      weights_(weights),
      options_(options),
      cache_(device, cache_shape(config, options)),
      max_pages_(ceil_div(options.max_tokens, kPage)),
      recorder_(device) {
  add_embedding(device);
  add_norm(device);
  add_attention(device);
  add_activation(device);
  add_sampling(device);
  const auto count = static_cast<std::int64_t>(bytes_of(cache_.shape()) / sizeof(BFloat16));
  fill_random_on(device, static_cast<BFloat16*>(cache_.keys(0)), {.seed = 7, .count = count});
  for (std::int64_t s = 0; s < options.batch; ++s) {
    sequences_.push_back(cache_.add());
    cache_.extend(sequences_.back(), options.max_tokens);
  }

  const std::int64_t b = options.batch;
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t q_columns = config.num_heads * config.head_dim;
  const auto input = [&](const char* name, const Shape& shape) {
    memory_.emplace_back(device, static_cast<std::size_t>(shape.volume()) * sizeof(std::int32_t));
    return constant(name, shape, DType::kI32, memory_.back().at());
  };
  ids_ = input("ids", {b});
  positions_ = input("positions", {b});
  slots_ = input("slots", {b});
  sequence_of_row_ = input("sequence of row", {b});
  past_ = input("past", {b});
  page_table_ = input("page table", {b, max_pages_});
  for (TensorId& sum : sum_) sum = value("sum", {b, hidden}, DType::kF32);
  norm_ = value("norm", {b, hidden}, DType::kBF16);
  qkv_ = value("qkv", {b, q_columns + 2 * config.num_kv_heads * config.head_dim}, DType::kF32);
  attention_ = value("attention", {b, q_columns}, DType::kBF16);
  delta_ = value("delta", {b, hidden}, DType::kF32);
  gate_up_ = value("gate-up", {b, 2 * config.intermediate_size}, DType::kF32);
  act_ = value("silu-mul", {b, config.intermediate_size}, DType::kBF16);
  logits_ = value("logits", {b, config.vocab_size}, DType::kF32);
  next_ = value("next ids", {b}, DType::kI32);

  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
  std::vector<LinearUse> qkv, o, gate_up, down;
  for (const LayerWeights& w : weights.layers) {
    qkv.push_back({&w.qkv, norm_, qkv_});
    o.push_back({&w.o, attention_, delta_});
    gate_up.push_back({&w.gate_up, norm_, gate_up_});
    down.push_back({&w.down, act_, delta_});
  }
  for (const auto& uses : {qkv, o, gate_up, down}) tune(uses);
  tune({{&weights.head, norm_, logits_}});
  add_layers();
  add_head();
  recorder_.record(stream_);
}

LibraryStep::~LibraryStep() {
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
}

TensorId LibraryStep::constant(const std::string& name, const Shape& shape, DType dtype,
                               void* address) {
  return plan_.tensor({.name = name,
                       .shape = shape,
                       .dtype = dtype,
                       .kind = TensorKind::kConstant,
                       .address = address});
}

TensorId LibraryStep::value(const std::string& name, const Shape& shape, DType dtype) {
  const auto bytes = static_cast<std::size_t>(shape.volume()) * size_of(dtype);
  memory_.emplace_back(device_, bytes);
  device_.fill(memory_.back().at(), 0, bytes);  // products are timed before there are values
  return plan_.tensor(
      {.name = name, .shape = shape, .dtype = dtype, .address = memory_.back().at()});
}

TensorId LibraryStep::weight(const std::string& name, const Weight& weight) {
  if (!weight) return kNoTensor;
  return constant(name, weight.shape, weight.dtype, weight.address);
}

ProductForm LibraryStep::shape_of(const LinearUse& use) const {
  return {.m = options_.batch, .n = use.weight->shape[0], .k = use.weight->shape[1]};
}

void LibraryStep::tune(const std::vector<LinearUse>& uses) {
  const ProductForm shape = shape_of(uses.front());
  std::unique_ptr<TunedProduct>& product = products_[shape];
  if (product != nullptr) return;
  product = std::make_unique<TunedProduct>(library_, shape, device_);
  TuneOperands operands;
  operands.x = address(uses.front().x);
  operands.y = address(uses.front().y);
  for (const LinearUse& use : uses) {
    if (operands.weights.size() < kMostTuneWeights) {
      operands.weights.push_back(use.weight->address);
    }
  }
  fill_random_on(device_, static_cast<BFloat16*>(address(uses.front().x)),
                 {.seed = 11, .count = shape.m * shape.k});
  product->tune(stream_, operands);
}

void LibraryStep::linear(const std::string& name, const LinearUse& use) {
  const TunedProduct* product = products_.at(shape_of(use)).get();
  recorder_.add(name, [product, w = use.weight->address, x = address(use.x), y = address(use.y)](
                          cudaStream_t stream) { product->enqueue(stream, w, x, y); });
}

std::int64_t LibraryStep::tile_n(std::int64_t columns) const {
  const std::int64_t works = std::max<std::int64_t>(1, device_.limits().num_sms / options_.batch);
  return std::min(columns, ceil_div(ceil_div(columns, works), kWideColumnUnit) * kWideColumnUnit);
}

void LibraryStep::add_layers() {
  const TensorTable& tensors = plan_.tensors();
  const auto eps = static_cast<float>(config_.rms_norm_eps);
  const Shape pool{cache_.pool_rows(), cache_.shape().row_elements};
  const Shape step{options_.batch, cache_.shape().row_elements};
  const TensorId inv_freq = weight("inv freq", weights_.inv_freq);
  const TensorId table = weight("embedding", weights_.embedding);
  recorder_.add(tensors, embedding(tensors, {.tile_m = 1}, ids_, table, sum_[0]));

  for (std::int64_t layer = 0; layer < config_.num_layers; ++layer) {
    const LayerWeights& w = weights_.layers[static_cast<std::size_t>(layer)];
    const TensorId attention_norm = weight("attention norm", w.attention_norm);
    if (layer == 0) {
      recorder_.add(tensors,
                    rms_norm(tensors, {.eps = eps, .tile_m = 1}, sum_[0], attention_norm, norm_));
    } else {
      recorder_.add(tensors, rms_norm_residual(tensors, {.eps = eps, .tile_m = 1},
                                               {.x = sum_[1],
                                                .delta = delta_,
                                                .weight = attention_norm,
                                                .sum = sum_[0],
                                                .y = norm_}));
    }
    linear("qkv", {&w.qkv, norm_, qkv_});
    const auto past = [&](const char* name, void* at) {
      return plan_.tensor({.name = name,
                           .shape = pool,
                           .dtype = DType::kBF16,
                           .kind = TensorKind::kState,
                           .address = at});
    };
    const auto rows = [&](const char* name, void* at) {
      return plan_.tensor({.name = name, .shape = step, .dtype = DType::kBF16, .address = at});
    };
    DecodeAttentionTensors operands{.qkv = qkv_,
                                    .positions = positions_,
                                    .slots = slots_,
                                    .sequence_of_row = sequence_of_row_,
                                    .page_table = page_table_,
                                    .inv_freq = inv_freq,
                                    .k_past = past("past keys", cache_.keys(layer)),
                                    .v_past = past("past values", cache_.values(layer)),
                                    .k_step = rows("keys", cache_.keys(layer)),
                                    .v_step = rows("values", cache_.values(layer)),
                                    .out = attention_,
                                    .q_norm = weight("q norm", w.q_norm),
                                    .k_norm = weight("k norm", w.k_norm)};
    recorder_.add(tensors, decode_attention(tensors,
                                            {.heads = config_.num_heads,
                                             .kv_heads = config_.num_kv_heads,
                                             .pool_rows = cache_.pool_rows(),
                                             .page_size = kPage,
                                             .eps = eps},
                                            operands));
    linear("o", {&w.o, attention_, delta_});
    recorder_.add(tensors, rms_norm_residual(tensors, {.eps = eps, .tile_m = 1},
                                             {.x = sum_[0],
                                              .delta = delta_,
                                              .weight = weight("mlp norm", w.mlp_norm),
                                              .sum = sum_[1],
                                              .y = norm_}));
    linear("gate-up", {&w.gate_up, norm_, gate_up_});
    recorder_.add(tensors,
                  silu_mul(tensors, {.tile_m = 1, .tile_n = tile_n(config_.intermediate_size)},
                           gate_up_, act_));
    linear("down", {&w.down, act_, delta_});
  }
}

void LibraryStep::add_head() {
  const TensorTable& tensors = plan_.tensors();
  const auto eps = static_cast<float>(config_.rms_norm_eps);
  recorder_.add(tensors, rms_norm_residual(tensors, {.eps = eps, .tile_m = 1},
                                           {.x = sum_[1],
                                            .delta = delta_,
                                            .weight = weight("final norm", weights_.final_norm),
                                            .sum = sum_[0],
                                            .y = norm_}));
  linear("lm head", {&weights_.head, norm_, logits_});
  recorder_.add(tensors, argmax(tensors, {.tile_m = 1, .tile_n = tile_n(config_.vocab_size)},
                                logits_, next_));

  AdvanceArgs args;
  const auto at = [&](TensorId id) { return static_cast<std::int32_t*>(address(id)); };
  args.rows = options_.batch;
  args.next = at(next_);
  args.ids = at(ids_);
  args.positions = at(positions_);
  args.past = at(past_);
  args.slots = at(slots_);
  args.page_table = at(page_table_);
  args.max_pages = static_cast<std::int32_t>(max_pages_);
  args.page_size = static_cast<std::int32_t>(kPage);
  memory_.emplace_back(
      device_, static_cast<std::size_t>(kRingLength * options_.batch) * sizeof(std::int32_t));
  args.tokens = reinterpret_cast<std::int32_t*>(memory_.back().at());
  memory_.emplace_back(device_, sizeof(std::uint32_t));
  device_.fill(memory_.back().at(), 0, sizeof(std::uint32_t));
  args.step = reinterpret_cast<std::uint32_t*>(memory_.back().at());
  args.ring_length = static_cast<std::int32_t>(kRingLength);
  recorder_.add("advance", make_advance(device_, args));
}

std::int32_t LibraryStep::first_id(std::int64_t sequence, std::int64_t vocab_size) {
  return static_cast<std::int32_t>((sequence * 7919 + 1) % vocab_size);
}

void LibraryStep::restart(std::int64_t context) {
  check_cuda(cudaStreamSynchronize(stream_), "run a step");
  std::vector<std::int32_t> ids, slots, sequence_of_row;
  std::vector<std::int32_t> page_table(static_cast<std::size_t>(options_.batch * max_pages_), -1);
  for (std::int64_t s = 0; s < options_.batch; ++s) {
    const KvCache::SequenceId sequence = sequences_[static_cast<std::size_t>(s)];
    ids.push_back(first_id(s, config_.vocab_size));
    slots.push_back(cache_.row(sequence, context));
    sequence_of_row.push_back(static_cast<std::int32_t>(s));
    const std::span<const std::int32_t> pages = cache_.pages(sequence);
    std::copy(pages.begin(), pages.end(), page_table.begin() + s * max_pages_);
  }
  const std::vector<std::int32_t> lengths(static_cast<std::size_t>(options_.batch),
                                          static_cast<std::int32_t>(context));
  const auto write = [&](TensorId id, const std::vector<std::int32_t>& values) {
    device_.upload(address(id), values.data(), values.size() * sizeof(std::int32_t));
  };
  write(ids_, ids);
  write(positions_, lengths);
  write(past_, lengths);
  write(slots_, slots);
  write(sequence_of_row_, sequence_of_row);
  write(page_table_, page_table);
}

std::vector<float> LibraryStep::logits() {
  check_cuda(cudaStreamSynchronize(stream_), "run a step");
  std::vector<float> values(static_cast<std::size_t>(options_.batch * config_.vocab_size));
  device_.download(values.data(), address(logits_), values.size() * sizeof(float));
  return values;
}

std::size_t LibraryStep::kv_bytes(std::int64_t tokens) const {
  const KvCacheShape& shape = cache_.shape();
  return static_cast<std::size_t>(2 * shape.layers * shape.row_elements * options_.batch * tokens) *
         sizeof(BFloat16);
}

}  // namespace tileweave::bench

#include "tileweave/models/weight_store.h"

#include <algorithm>

#include "tileweave/core/error.h"
#include "tileweave/kernels/rope/rope_frequencies.h"

namespace tileweave {
namespace {

constexpr std::size_t kStagingBytes = 64 << 20;

}  // namespace

std::byte* WeightStore::allocate(std::size_t bytes) {
  memory_.emplace_back(device_, bytes);
  bytes_ += bytes;
  return memory_.back().at();
}

Weight WeightStore::plain(const Shape& shape, DType dtype, const PlaceRows& place) {
  Weight weight{.shape = shape, .dtype = dtype};
  std::byte* at = allocate(bytes_of(weight));
  weight.address = at;
  place(0, shape[0], at);
  return weight;
}

Weight WeightStore::packed(const Shape& shape, StripOrder order, const PlaceRows& place,
                           void* row_major) {
  const PackedLayout layout{.n = shape[0], .k = shape[1], .order = order};
  require(order != StripOrder::kPaired || shape[0] % 2 == 0, "pack weights",
          "an even number of rows of gate and up", std::to_string(shape[0]));
  Weight weight{.shape = shape, .dtype = DType::kBF16, .packing = order};
  std::byte* to = allocate(static_cast<std::size_t>(layout.bytes()));
  weight.address = to;
  if (!form_.keeps_copies()) {
    pack_in_parts(layout, place, to);
    return weight;
  }
  if (row_major == nullptr) {
    std::byte* copy = allocate(row_major_bytes(shape));
    copy_bytes_ += row_major_bytes(shape);
    place(0, shape[0], copy);
    row_major = copy;
  }
  weight.row_major = row_major;
  pack_weights_on(device_, static_cast<const BFloat16*>(row_major), layout,
                  reinterpret_cast<BFloat16*>(to));
  return weight;
}

void WeightStore::pack_in_parts(const PackedLayout& layout, const PlaceRows& place, std::byte* to) {
  // Whole strips at a time, of both halves where these are paired: each is a matrix of its own.
  const std::int64_t parts = layout.order == StripOrder::kPaired ? 2 : 1;
  const std::int64_t row_bytes = layout.k * static_cast<std::int64_t>(sizeof(BFloat16));
  const std::int64_t strips = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(kStagingBytes) / (row_bytes * kStripRows * parts));
  const std::int64_t step = strips * kStripRows;
  const auto needed =
      static_cast<std::size_t>(std::min(step, layout.part_rows()) * parts * row_bytes);
  if (needed > staging_bytes_) {
    staging_.reset();
    staging_.emplace(device_, needed);
    staging_bytes_ = needed;
  }
  for (std::int64_t first = 0; first < layout.part_rows(); first += step) {
    const std::int64_t rows = std::min(step, layout.part_rows() - first);
    for (std::int64_t part = 0; part < parts; ++part) {
      place(part * layout.part_rows() + first, rows,
            staging_->at(static_cast<std::size_t>(part * rows * row_bytes)));
    }
    pack_weights_on(
        device_, reinterpret_cast<const BFloat16*>(staging_->at()),
        {.n = rows * parts, .k = layout.k, .order = layout.order},
        reinterpret_cast<BFloat16*>(to + first / kStripRows * parts * layout.strip_bytes()));
  }
}

ModelWeights assemble_weights(const ModelConfig& config, const WeightForm& form,
                              const std::function<Weight(const WeightSpec&)>& make) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t inner = config.intermediate_size;
  const std::int64_t q_columns = config.num_heads * config.head_dim;
  const std::int64_t qkv_columns = q_columns + 2 * config.num_kv_heads * config.head_dim;
  const auto norm = [&](const std::string& name, std::int64_t size) {
    return make({.names = {name}, .shape = {size}, .role = WeightRole::kNorm});
  };
  const auto bias = [&](std::vector<std::string> names, std::int64_t size) {
    return make({.names = std::move(names), .shape = {size}, .role = WeightRole::kBias});
  };

  ModelWeights weights;
  weights.embedding = make({.names = {"model.embed_tokens.weight"},
                            .shape = {config.vocab_size, hidden},
                            .role = WeightRole::kEmbedding});
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    const std::string attention = at + "self_attn.";
    const std::string mlp = at + "mlp.";
    LayerWeights w;
    w.attention_norm = norm(at + "input_layernorm.weight", hidden);
    w.qkv = make({.names = {attention + "q_proj.weight", attention + "k_proj.weight",
                            attention + "v_proj.weight"},
                  .shape = {qkv_columns, hidden}});
    if (config.attention_bias) {
      w.qkv_bias =
          bias({attention + "q_proj.bias", attention + "k_proj.bias", attention + "v_proj.bias"},
               qkv_columns);
    }
    if (config.has_qk_norm()) {
      w.q_norm = norm(attention + "q_norm.weight", config.head_dim);
      w.k_norm = norm(attention + "k_norm.weight", config.head_dim);
    }
    w.o = make({.names = {attention + "o_proj.weight"}, .shape = {hidden, q_columns}});
    if (config.attention_bias) w.o_bias = bias({attention + "o_proj.bias"}, hidden);
    w.mlp_norm = norm(at + "post_attention_layernorm.weight", hidden);
    w.gate_up = make({.names = {mlp + "gate_proj.weight", mlp + "up_proj.weight"},
                      .shape = {2 * inner, hidden},
                      .role = WeightRole::kGateUp});
    if (config.mlp_bias) {
      w.gate_up_bias = bias({mlp + "gate_proj.bias", mlp + "up_proj.bias"}, 2 * inner);
    }
    w.down = make({.names = {mlp + "down_proj.weight"}, .shape = {hidden, inner}});
    if (config.mlp_bias) w.down_bias = bias({mlp + "down_proj.bias"}, hidden);
    weights.layers.push_back(w);
  }
  weights.final_norm = norm("model.norm.weight", hidden);
  if (config.tie_word_embeddings && form.matrices == MatrixLayout::kRowMajor) {
    weights.head = weights.embedding;
  } else {
    weights.head = make(
        {.names = {config.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight"},
         .shape = {config.vocab_size, hidden},
         .row_major = config.tie_word_embeddings ? weights.embedding.address : nullptr});
  }
  return weights;
}

std::vector<float> rotary_frequencies(const ModelConfig& config) {
  const RopeConfig& rope = config.rope;
  return rope_inv_freq({.head_dim = config.head_dim,
                        .theta = rope.theta,
                        .scaling = rope.type == RopeType::kLlama3   ? RopeScaling::kLlama3
                                   : rope.type == RopeType::kLinear ? RopeScaling::kLinear
                                                                    : RopeScaling::kDefault,
                        .factor = rope.factor,
                        .low_freq_factor = rope.low_freq_factor,
                        .high_freq_factor = rope.high_freq_factor,
                        .original_max_position_embeddings =
                            static_cast<double>(rope.original_max_position_embeddings)});
}

ModelWeights finished(ModelWeights weights, const ModelConfig& config, Device& device,
                      WeightStore& store) {
  const std::vector<float> values = rotary_frequencies(config);
  weights.inv_freq = store.plain({static_cast<std::int64_t>(values.size())}, DType::kF32,
                                 [&](std::int64_t first, std::int64_t count, std::byte* to) {
                                   device.upload(to, values.data() + first,
                                                 static_cast<std::size_t>(count) * sizeof(float));
                                 });
  weights.bytes = store.bytes();
  weights.copy_bytes = store.copy_bytes();
  weights.memory = store.take_memory();
  return weights;
}

}  // namespace tileweave

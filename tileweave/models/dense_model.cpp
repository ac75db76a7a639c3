#include "tileweave/models/dense_model.h"

#include "tileweave/kernels/activation/silu_mul.h"
#include "tileweave/kernels/attention/attention_shared.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/kernels/embedding/embedding.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/kernels/gemm/wide_gemm.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/rope/rope_kv.h"
#include "tileweave/kernels/sampling/add_sampling.h"
#include "tileweave/models/transformer_blocks.h"

namespace tileweave {

StepOutputs dense_step(StepBuilder& b) {
  ResidualStream stream = embedded(b);
  for (std::int64_t layer = 0; layer < b.config().num_layers; ++layer) {
    const LayerWeights& w = b.weights().layers[static_cast<std::size_t>(layer)];
    b.enter_layer(layer);
    attention_block(b, w, stream);
    mlp_block(b, w, stream);
  }
  b.enter_layer(-1);
  return head(b, stream);
}

void add_dense_model_kernels(Device& device) {
  add_embedding(device);
  add_norm(device);
  const bool packed = numeric_form(device.name()).matrices == MatrixLayout::kPacked;
  if (packed) {
    add_skinny_gemm(device);
    add_wide_gemm(device);
  } else {
    add_gemm(device);
  }
  add_rope(device);
  add_attention(device);
  add_activation(device);
  add_sampling(device);
}

std::int64_t rows_that_fit(const ModelConfig& config, const ModelWeights& weights,
                           Granularity granularity, const DeviceLimits& limits) {
  const auto element = static_cast<std::int64_t>(size_of(weights.final_norm.dtype));
  const std::int64_t norm = granularity == Granularity::kStages ? config.hidden_size * element : 0;
  const auto fits = [&](std::int64_t rows, std::int64_t columns, std::int64_t norm_bytes) {
    return skinny_gemm_least_shared(rows, columns, best_products(limits), norm_bytes) <=
           limits.shared_bytes_per_block;
  };
  std::int64_t rows = kSkinnyMostRows;
  while (rows > 1 && !(fits(rows, config.hidden_size, norm) &&
                       fits(rows, config.num_heads * config.head_dim, 0) &&
                       fits(rows, config.intermediate_size, 0))) {
    rows /= 2;
  }
  return rows;
}

std::string why_not_on_gpu(const ModelConfig& config) {
  if (!is_attention_head_dim(config.head_dim)) {
    return "attention on a GPU takes heads of 64, 80, 96 or 128 elements, not of " +
           std::to_string(config.head_dim);
  }
  if (config.num_heads / config.num_kv_heads > kAttentionMaxHeads) {
    return "attention on a GPU takes at most " + std::to_string(kAttentionMaxHeads) +
           " query heads per KV head, not " +
           std::to_string(config.num_heads / config.num_kv_heads);
  }
  return {};
}

}  // namespace tileweave

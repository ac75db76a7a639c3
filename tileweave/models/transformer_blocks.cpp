#include "tileweave/models/transformer_blocks.h"

#include "tileweave/kernels/activation/silu_mul.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/kernels/embedding/embedding.h"
#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/kernels/norm/qk_norm.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/norm/rms_norm_residual.h"
#include "tileweave/kernels/rope/rope_kv.h"
#include "tileweave/kernels/sampling/argmax.h"
#include "tileweave/kernels/sampling/sample.h"

namespace tileweave {
namespace {

/// y = x Wᵀ with an epilogue; y (rows of x, rows of W).
void linear(StepBuilder& b, const char* op, TensorId x, const Weight& w,
            const GemmEpilogue& epilogue, TensorId y) {
  const Shape shape = b.tensors()[y].spec.shape;
  b.plan().add(gemm(b.tensors(),
                    {.name = b.name(op),
                     .tile_m = std::min(b.tile_m(), shape[0]),
                     .tile_n = b.tile_n(shape[1]),
                     .b_layout = BLayout::kNxK,
                     .num_blocks = b.num_blocks(),
                     .epilogue = epilogue},
                    x, b.weight(w, op), y));
}

/// Adds x Wᵀ to the stream: at once in `stages`, else by the next norm.
void add_linear(StepBuilder& b, const char* op, TensorId x, const Weight& w, const Weight& bias,
                ResidualStream& stream) {
  const std::int64_t hidden = b.config().hidden_size;
  const TensorId y = b.value(op, hidden);
  b.plan().tile(y, {b.tile_m(), hidden});  // + alloc
  GemmEpilogue epilogue{.bias = b.weight(bias, op)};
  if (b.fuses()) epilogue.residual = stream.sum;
  linear(b, op, x, w, epilogue, y);
  stream = b.fuses() ? ResidualStream{.sum = y} : ResidualStream{.sum = stream.sum, .delta = y};
}

}  // namespace

ResidualStream embedded(StepBuilder& b) {
  const ModelConfig& config = b.config();
  const TensorId x = b.value("embedding", config.hidden_size);
  b.plan().tile(x, {b.tile_m(), config.hidden_size});  // + alloc
  b.plan().add(
      embedding(b.tensors(),
                {.name = b.name("embedding"), .tile_m = b.tile_m(), .num_blocks = b.num_blocks()},
                b.inputs().ids, b.weight(b.weights().embedding, "embedding"), x));
  return {.sum = x};
}

TensorId normed(StepBuilder& b, const char* op, const Weight& weight, ResidualStream& stream) {
  const std::int64_t hidden = b.config().hidden_size;
  const TensorId y = b.value(op, hidden);
  b.plan().tile(y, {b.tile_m(), hidden});  // + alloc
  if (stream.delta == kNoTensor) {
    b.plan().add(rms_norm(
        b.tensors(),
        {.name = b.name(op), .eps = b.eps(), .tile_m = b.tile_m(), .num_blocks = b.num_blocks()},
        stream.sum, b.weight(weight, op), y));
    return y;
  }
  const TensorId sum = b.value(std::string(op) + " sum", hidden);
  b.plan().tile(sum, {b.tile_m(), hidden});  // + alloc
  b.plan().add(rms_norm_residual(
      b.tensors(),
      {.name = b.name(op), .eps = b.eps(), .tile_m = b.tile_m(), .num_blocks = b.num_blocks()},
      {.x = stream.sum,
       .delta = stream.delta,
       .weight = b.weight(weight, op),
       .sum = sum,
       .y = y}));
  stream = {.sum = sum};
  return y;
}

void attention_block(StepBuilder& b, const LayerWeights& w, ResidualStream& stream) {
  const ModelConfig& config = b.config();
  const std::int64_t head_dim = config.head_dim;
  const std::int64_t q_columns = config.num_heads * head_dim;
  const std::int64_t kv_columns = config.num_kv_heads * head_dim;
  const TensorId x = normed(b, "attention norm", w.attention_norm, stream);

  TensorId qkv = b.value("qkv", q_columns + 2 * kv_columns);
  b.plan().tile(qkv, {b.tile_m(), head_dim});  // + alloc
  linear(b, "qkv", x, w.qkv, {.bias = b.weight(w.qkv_bias, "qkv bias")}, qkv);

  const bool norms_here = w.q_norm && !b.fuses();
  if (norms_here) {
    const TensorId normal = b.value("qk norm", q_columns + 2 * kv_columns);
    b.plan().tile(normal, {b.tile_m(), head_dim});  // + alloc
    b.plan().add(qk_norm(b.tensors(),
                         {.name = b.name("qk norm"),
                          .heads = config.num_heads,
                          .kv_heads = config.num_kv_heads,
                          .eps = b.eps(),
                          .tile_m = b.tile_m(),
                          .tile_heads = config.num_heads / config.num_kv_heads,
                          .num_blocks = b.num_blocks()},
                         qkv, b.weight(w.q_norm, "q norm"), b.weight(w.k_norm, "k norm"), normal));
    qkv = normal;
  }

  const std::int64_t group_columns = q_columns / config.num_kv_heads;  // + alloc
  const KvTensors kv = b.kv();
  const TensorId q = b.value("q", q_columns);
  b.plan().tile(q, {b.tile_m(), group_columns});     // + alloc
  b.plan().tile(kv.k_step, {b.tile_m(), head_dim});  // + alloc
  b.plan().tile(kv.v_step, {b.tile_m(), head_dim});  // + alloc
  b.plan().add(rope_kv(b.tensors(),
                       {.name = b.name("rope"),
                        .heads = config.num_heads,
                        .kv_heads = config.num_kv_heads,
                        .pool_rows = b.context().cache->pool_rows(),
                        .eps = b.eps(),
                        .tile_m = b.tile_m(),
                        .tile_kv_heads = 1,
                        .num_blocks = b.num_blocks()},
                       {.qkv = qkv,
                        .positions = b.inputs().positions,
                        .slots = b.inputs().slots,
                        .inv_freq = b.weight(b.weights().inv_freq, "rope"),
                        .q = q,
                        .k_step = kv.k_step,
                        .v_step = kv.v_step,
                        .q_norm = norms_here ? kNoTensor : b.weight(w.q_norm, "q norm"),
                        .k_norm = norms_here ? kNoTensor : b.weight(w.k_norm, "k norm")}));

  const TensorId a = b.value("attention", q_columns);
  b.plan().tile(a, {b.tile_m(), q_columns});  // + alloc
  b.plan().add(paged_attention(b.tensors(),
                               {.name = b.name("attention"),
                                .head_dim = head_dim,
                                .page_size = b.context().cache->shape().page_size,
                                .tile_m = b.tile_m(),
                                .num_blocks = b.num_blocks()},
                               {.q = q,
                                .k_step = kv.k_step,
                                .v_step = kv.v_step,
                                .k_past = kv.k_past,
                                .v_past = kv.v_past,
                                .positions = b.inputs().positions,
                                .slots = b.inputs().slots,
                                .sequence_of_row = b.inputs().sequence_of_row,
                                .first_row = b.inputs().first_row,
                                .past = b.inputs().past,
                                .page_table = b.inputs().page_table,
                                .out = a}));
  add_linear(b, "o", a, w.o, w.o_bias, stream);
}

void mlp_block(StepBuilder& b, const LayerWeights& w, ResidualStream& stream) {
  const std::int64_t inner = b.config().intermediate_size;
  const TensorId x = normed(b, "mlp norm", w.mlp_norm, stream);
  const TensorId bias = b.weight(w.gate_up_bias, "gate-up bias");
  const TensorId act = b.value("silu-mul", inner);
  b.plan().tile(act, {b.tile_m(), inner});  // + alloc
  if (b.fuses()) {
    linear(b, "gate-up", x, w.gate_up,
           {.bias = bias, .activation = GemmActivation::kSilu, .gated = true}, act);
  } else {
    const TensorId gate_up = b.value("gate-up", 2 * inner);
    b.plan().tile(gate_up, {b.tile_m(), b.tile_n(inner)});  // + alloc
    linear(b, "gate-up", x, w.gate_up, {.bias = bias}, gate_up);
    b.plan().add(silu_mul(b.tensors(),
                          {.name = b.name("silu-mul"),
                           .tile_m = b.tile_m(),
                           .tile_n = b.tile_n(inner),
                           .num_blocks = b.num_blocks()},
                          gate_up, act));
  }
  add_linear(b, "down", act, w.down, w.down_bias, stream);
}

StepOutputs head(StepBuilder& b, ResidualStream& stream) {
  const StepShape& shape = b.shape();
  const std::int64_t vocab = b.config().vocab_size;
  const std::int64_t hidden = b.config().hidden_size;
  if (shape.head == Head::kNone) return {};
  TensorId x = normed(b, "final norm", b.weights().final_norm, stream);
  if (shape.outputs != shape.rows) {
    const TensorId rows = b.value("output rows", shape.outputs, hidden);
    b.plan().tile(rows, {b.tile_m(), hidden});  // + alloc
    b.plan().add(embedding(b.tensors(), {.name = "output rows", .tile_m = b.tile_m()},
                           b.inputs().output_rows, x, rows));
    x = rows;
  }
  if (shape.head == Head::kLogits) {
    const TensorId logits = b.output("logits", {shape.outputs, vocab}, DType::kF32);
    linear(b, "lm head", x, b.weights().head, {}, logits);
    return {.logits = logits};
  }
  const TensorId logits = b.value("logits", shape.outputs, vocab);
  b.plan().tile(logits, {b.tile_m(), b.tile_n(vocab)});  // + alloc
  linear(b, "lm head", x, b.weights().head, {}, logits);
  const TensorId next = b.output("next ids", {shape.outputs}, DType::kI32);
  if (shape.head == Head::kArgmax) {
    b.plan().add(argmax(b.tensors(), {.tile_n = b.tile_n(vocab), .num_blocks = b.num_blocks()},
                        logits, next));
    return {.next_ids = next};
  }
  const StepInputs& in = b.inputs();
  b.plan().add(sample(b.tensors(), {.num_blocks = b.num_blocks()},
                      {.logits = logits,
                       .temperature = in.temperature,
                       .top_p = in.top_p,
                       .min_p = in.min_p,
                       .repetition_penalty = in.repetition_penalty,
                       .top_k = in.top_k,
                       .seed = in.seed,
                       .position = in.draw_position,
                       .history = in.history,
                       .history_length = in.history_length,
                       .ids = next}));
  return {.next_ids = next};
}

}  // namespace tileweave

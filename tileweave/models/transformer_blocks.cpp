#include "tileweave/models/transformer_blocks.h"

#include "tileweave/kernels/activation/silu_mul.h"
#include "tileweave/kernels/attention/decode_attention.h"
#include "tileweave/kernels/attention/paged_attention.h"
#include "tileweave/kernels/embedding/embedding.h"
#include "tileweave/kernels/norm/qk_norm.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/norm/rms_norm_residual.h"
#include "tileweave/kernels/rope/rope_kv.h"
#include "tileweave/kernels/sampling/argmax.h"
#include "tileweave/kernels/sampling/sample.h"
#include "tileweave/models/linear.h"

namespace tileweave {
namespace {

/// Adds x Wᵀ to the stream: at once in `stages`, else by the next norm.
void add_linear(StepBuilder& b, const char* name, StepOp op, TensorId x, const Weight& w,
                const Weight& bias, ResidualStream& stream) {
  const TensorId y = b.value(name, b.config().hidden_size);
  b.tile(y, op, b.config().hidden_size);  // + alloc
  linear(b, {.name = name,
             .op = op,
             .x = x,
             .y = y,
             .weight = &w,
             .bias = b.weight(bias, name),
             .residual = b.fuses() ? stream.sum : kNoTensor});
  stream = b.fuses() ? ResidualStream{.sum = y} : ResidualStream{.sum = stream.sum, .delta = y};
}

/// The rows of `x` that the head sees, where these are not all.
TensorId output_rows(StepBuilder& b, const char* name, TensorId x) {
  if (x == kNoTensor || b.shape().outputs == b.shape().rows) return x;
  const std::int64_t hidden = b.config().hidden_size;
  const TensorId rows = b.value(name, b.shape().outputs, hidden);
  b.tile(rows, StepOp::kEmbedding, hidden);  // + alloc
  b.plan().add(embedding(b.tensors(),
                         {.name = name, .tile_m = b.tile_m(), .edge = b.edge(StepOp::kEmbedding)},
                         b.inputs().output_rows, x, rows));
  return rows;
}

}  // namespace

ResidualStream embedded(StepBuilder& b) {
  const ModelConfig& config = b.config();
  const TensorId x = b.value("embedding", config.hidden_size);
  b.tile(x, StepOp::kEmbedding, config.hidden_size);  // + alloc
  b.plan().add(embedding(b.tensors(),
                         {.name = b.name("embedding"),
                          .tile_m = b.tile_m(),
                          .num_blocks = b.num_blocks(),
                          .edge = b.edge(StepOp::kEmbedding)},
                         b.inputs().ids, b.weight(b.weights().embedding, "embedding"), x));
  return {.sum = x};
}

NormedRows normed(StepBuilder& b, const char* name, const Weight& weight, ResidualStream& stream) {
  if (b.fuses_norms()) return {.x = stream.sum, .norm = b.weight(weight, name)};
  const Shape shape = b.tensors()[stream.sum].spec.shape;
  const TensorId y = b.value(name, shape[0], shape[1], b.operand());
  b.tile(y, StepOp::kNorm, shape[1]);  // + alloc
  if (stream.delta == kNoTensor) {
    b.plan().add(rms_norm(b.tensors(),
                          {.name = b.name(name),
                           .eps = b.eps(),
                           .tile_m = b.tile_m(),
                           .num_blocks = b.num_blocks(),
                           .edge = b.edge(StepOp::kNorm)},
                          stream.sum, b.weight(weight, name), y));
    return {.x = y};
  }
  const TensorId sum = b.value(std::string(name) + " sum", shape[0], shape[1]);
  if (!stream.ends) b.tile(sum, StepOp::kNorm, shape[1]);  // + alloc
  b.plan().add(rms_norm_residual(b.tensors(),
                                 {.name = b.name(name),
                                  .eps = b.eps(),
                                  .tile_m = b.tile_m(),
                                  .num_blocks = b.num_blocks(),
                                  .edge = b.edge(StepOp::kNorm)},
                                 {.x = stream.sum,
                                  .delta = stream.delta,
                                  .weight = b.weight(weight, name),
                                  .sum = sum,
                                  .y = y}));
  stream = {.sum = sum};
  return {.x = y};
}

void attention_block(StepBuilder& b, const LayerWeights& w, ResidualStream& stream) {
  const ModelConfig& config = b.config();
  const std::int64_t head_dim = config.head_dim;
  const std::int64_t q_columns = config.num_heads * head_dim;
  const std::int64_t kv_columns = config.num_kv_heads * head_dim;
  const NormedRows x = normed(b, "attention norm", w.attention_norm, stream);

  TensorId qkv = b.value("qkv", q_columns + 2 * kv_columns);
  b.tile(qkv, StepOp::kQkv, head_dim);  // + alloc
  linear(b, {.name = "qkv",
             .op = StepOp::kQkv,
             .x = x.x,
             .y = qkv,
             .weight = &w.qkv,
             .bias = b.weight(w.qkv_bias, "qkv bias"),
             .norm = x.norm});

  const KvTensors kv = b.kv();
  const TensorId a = b.value("attention", q_columns, b.operand());
  b.tile(a, StepOp::kAttention, q_columns);  // + alloc

  if (b.fuses_attention()) {
    b.plan().add(decode_attention(b.tensors(),
                                  {.name = b.name("attention"),
                                   .heads = config.num_heads,
                                   .kv_heads = config.num_kv_heads,
                                   .pool_rows = b.context().cache->pool_rows(),
                                   .page_size = b.context().cache->shape().page_size,
                                   .eps = b.eps(),
                                   .num_splits = b.knobs(StepOp::kAttention).splits,
                                   .buffers = b.knobs(StepOp::kAttention).buffers,
                                   .shared_limit = b.context().limits.shared_bytes_per_block,
                                   .shared_padding = b.knobs(StepOp::kAttention).shared_padding,
                                   .edge = b.edge(StepOp::kAttention)},
                                  {.qkv = qkv,
                                   .positions = b.inputs().positions,
                                   .slots = b.inputs().slots,
                                   .sequence_of_row = b.inputs().sequence_of_row,
                                   .page_table = b.inputs().page_table,
                                   .inv_freq = b.weight(b.weights().inv_freq, "rope"),
                                   .k_past = kv.k_past,
                                   .v_past = kv.v_past,
                                   .k_step = kv.k_step,
                                   .v_step = kv.v_step,
                                   .out = a,
                                   .q_norm = b.weight(w.q_norm, "q norm"),
                                   .k_norm = b.weight(w.k_norm, "k norm")}));
    return add_linear(b, "o", StepOp::kO, a, w.o, w.o_bias, stream);
  }

  const bool norms_here = w.q_norm && !b.fuses();
  if (norms_here) {
    const TensorId normal = b.value("qk norm", q_columns + 2 * kv_columns);
    b.tile(normal, StepOp::kQkNorm, head_dim);  // + alloc
    b.plan().add(qk_norm(b.tensors(),
                         {.name = b.name("qk norm"),
                          .heads = config.num_heads,
                          .kv_heads = config.num_kv_heads,
                          .eps = b.eps(),
                          .tile_m = b.tile_m_of_heads(),
                          .tile_heads = config.num_heads / config.num_kv_heads,
                          .num_blocks = b.num_blocks(),
                          .edge = b.edge(StepOp::kQkNorm)},
                         qkv, b.weight(w.q_norm, "q norm"), b.weight(w.k_norm, "k norm"), normal));
    qkv = normal;
  }

  const TensorId q = b.value("q", q_columns, b.operand());
  b.tile(kv.k_step, StepOp::kRope, head_dim);                 // + alloc
  b.tile(kv.v_step, StepOp::kRope, head_dim);                 // + alloc
  b.tile(q, StepOp::kRope, q_columns / config.num_kv_heads);  // + alloc
  b.plan().add(rope_kv(b.tensors(),
                       {.name = b.name("rope"),
                        .heads = config.num_heads,
                        .kv_heads = config.num_kv_heads,
                        .pool_rows = b.context().cache->pool_rows(),
                        .eps = b.eps(),
                        .tile_m = b.tile_m_of_heads(),
                        .tile_kv_heads = 1,
                        .num_blocks = b.num_blocks(),
                        .edge = b.edge(StepOp::kRope)},
                       {.qkv = qkv,
                        .positions = b.inputs().positions,
                        .slots = b.inputs().slots,
                        .inv_freq = b.weight(b.weights().inv_freq, "rope"),
                        .q = q,
                        .k_step = kv.k_step,
                        .v_step = kv.v_step,
                        .q_norm = norms_here ? kNoTensor : b.weight(w.q_norm, "q norm"),
                        .k_norm = norms_here ? kNoTensor : b.weight(w.k_norm, "k norm")}));

  b.plan().add(paged_attention(b.tensors(),
                               {.name = b.name("attention"),
                                .head_dim = head_dim,
                                .page_size = b.context().cache->shape().page_size,
                                .tile_m = b.tile_m_of_heads(),
                                .num_splits = b.knobs(StepOp::kAttention).splits,
                                .num_blocks = b.num_blocks(),
                                .edge = b.edge(StepOp::kAttention)},
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
  add_linear(b, "o", StepOp::kO, a, w.o, w.o_bias, stream);
}

void mlp_block(StepBuilder& b, const LayerWeights& w, ResidualStream& stream) {
  const std::int64_t inner = b.config().intermediate_size;
  const NormedRows x = normed(b, "mlp norm", w.mlp_norm, stream);
  const TensorId act = b.value("silu-mul", inner, b.operand());
  LinearSpec gate_up{.name = "gate-up",
                     .op = StepOp::kGateUp,
                     .x = x.x,
                     .y = act,
                     .weight = &w.gate_up,
                     .bias = b.weight(w.gate_up_bias, "gate-up bias"),
                     .gated = b.fuses(),
                     .norm = x.norm};
  b.tile(act, b.fuses() ? StepOp::kGateUp : StepOp::kSiluMul, inner);  // + alloc
  if (b.fuses()) {
    linear(b, gate_up);
  } else {
    gate_up.y = b.value("gate-up", 2 * inner);
    b.tile(gate_up.y, StepOp::kGateUp, b.tile_n(inner));  // + alloc
    linear(b, gate_up);
    b.plan().add(silu_mul(b.tensors(),
                          {.name = b.name("silu-mul"),
                           .tile_m = b.tile_m(),
                           .tile_n = b.tile_n(inner),
                           .num_blocks = b.num_blocks(),
                           .edge = b.edge(StepOp::kSiluMul)},
                          gate_up.y, act));
  }
  add_linear(b, "down", StepOp::kDown, act, w.down, w.down_bias, stream);
}

StepOutputs head(StepBuilder& b, ResidualStream& stream) {
  const StepShape& shape = b.shape();
  const std::int64_t vocab = b.config().vocab_size;
  if (shape.head == Head::kNone) return {};
  stream = {.sum = output_rows(b, "output rows", stream.sum),
            .delta = output_rows(b, "output rows to add", stream.delta),
            .ends = true};
  const NormedRows x = normed(b, "final norm", b.weights().final_norm, stream);
  LinearSpec lm_head{.name = "lm head",
                     .op = StepOp::kHead,
                     .x = x.x,
                     .weight = &b.weights().head,
                     .norm = x.norm};
  if (shape.head == Head::kLogits) {
    lm_head.y = b.output("logits", {shape.outputs, vocab}, DType::kF32);
    linear(b, lm_head);
    return {.logits = lm_head.y};
  }
  const TensorId logits = b.output("logits", {shape.outputs, vocab}, DType::kF32);
  b.tile(logits, StepOp::kHead, b.tile_n(vocab));  // + alloc
  lm_head.y = logits;
  linear(b, lm_head);
  const TensorId next = b.output("next ids", {shape.outputs}, DType::kI32);
  if (shape.head == Head::kArgmax) {
    b.plan().add(argmax(
        b.tensors(),
        {.tile_n = b.tile_n(vocab), .num_blocks = b.num_blocks(), .edge = b.edge(StepOp::kDraw)},
        logits, next));
    return {.next_ids = next, .scores = logits};
  }
  const StepInputs& in = b.inputs();
  b.plan().add(sample(b.tensors(), {.num_blocks = b.num_blocks(), .edge = b.edge(StepOp::kDraw)},
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
  return {.next_ids = next, .scores = logits};
}

}  // namespace tileweave

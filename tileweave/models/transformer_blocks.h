// The two halves of a decoder layer, and the residual stream between them, as op sequences.
//
// Called by the models (llama.h, qwen3.h). Each adds nodes to the builder's plan; lines that exist
// only so that kernels overlap are marked, scripts/usability.py counts them.
#pragma once

#include "tileweave/models/model_weights.h"
#include "tileweave/models/step_builder.h"

namespace tileweave {

/// The hidden states (T, H): what has been added up, and what the next norm still has to add.
struct ResidualStream {
  TensorId sum = kNoTensor;
  TensorId delta = kNoTensor;  // kNoTensor: nothing
  /// No layer comes after the next norm. Tiles of its sum would be signalled to somebody outside.
  bool ends = false;
};

/// Rows for a product: normed, or with the weight of the norm that the product is to put in front.
struct NormedRows {
  TensorId x = kNoTensor;
  TensorId norm = kNoTensor;  // kNoTensor: x is normed
};

/// RMSNorm of the stream's sum, which then includes the delta: (T, H).
NormedRows normed(StepBuilder& b, const char* name, const Weight& weight, ResidualStream& stream);

/// norm, qkv, [QK-norm,] RoPE with KV write, paged attention, output projection.
void attention_block(StepBuilder& b, const LayerWeights& w, ResidualStream& stream);

/// norm, gate-up, SiLU-mul, down.
void mlp_block(StepBuilder& b, const LayerWeights& w, ResidualStream& stream);

/// Rows of token ids: (T, H).
ResidualStream embedded(StepBuilder& b);

/// Final norm, rows that the head sees, LM head, next ids: as the step's shape says.
StepOutputs head(StepBuilder& b, ResidualStream& stream);

}  // namespace tileweave

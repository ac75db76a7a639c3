// What the weights of a configured model must be called and shaped, and whether a checkpoint is
// just that.
//
// Names are those of Hugging Face's files ("model.layers.0.self_attn.q_proj.weight"), linear layers
// are stored (outputs, inputs). The config wins over the file: with a tied head `lm_head.weight`
// may be there and is not used. `rotary_emb.inv_freq` buffers of old files are not used either.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/models/checkpoint/checkpoint.h"
#include "tileweave/models/checkpoint/config.h"

namespace tileweave {

struct ExpectedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// In the order of computation: embedding, layers, final norm, head (unless tied).
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

/// Elements of all of them.
std::int64_t parameter_count(const ModelConfig& config);

/// Throws Error naming directory and tensor when one is missing, has another shape than the config
/// gives it or a dtype other than F32, BF16 and F16, or when the checkpoint holds one that the
/// model would not use.
void require_expected_tensors(const ModelConfig& config, const Checkpoint& checkpoint);

}  // namespace tileweave

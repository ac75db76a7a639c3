// Dense decoders as a sequence of operators: Llama (2, 3, 3.1, 3.2) and Qwen3.
//
// Qwen3 differs by its QK-norm, whose weights say that it is there. dense_step adds every node of a
// step to the builder's plan and returns what the host reads after a run.
#pragma once

#include <string>

#include "tileweave/models/step_builder.h"
#include "tileweave/runtime/device.h"

namespace tileweave {

StepOutputs dense_step(StepBuilder& b);

/// Adds the kernels that these models run to a device. Throws Error naming an operator that the
/// device has no implementation of.
void add_dense_model_kernels(Device& device);

/// Most rows of a step whose skinny products fit the shared memory of a block, a power of two; 1
/// also where no row fits (the step's products then throw Error naming the need).
std::int64_t rows_that_fit(const ModelConfig& config, const ModelWeights& weights,
                           Granularity granularity, const DeviceLimits& limits);

/// Why no GPU can run a model, as half a sentence; empty: one can.
std::string why_not_on_gpu(const ModelConfig& config);

}  // namespace tileweave

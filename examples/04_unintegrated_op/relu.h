// ReLU as an ordinary program has it: on its own, on an ordinary stream, with no idea of tiles.
#pragma once

#include <cstdint>

#include "tileweave/runtime/launch.h"

namespace examples {

/// Host loop over memory of the emulated device.
void relu_cpu(const float* from, float* to, std::int64_t count);
/// Plain kernel launch on a cudaStream_t.
void enqueue_relu_cuda(const float* from, float* to, std::int64_t count,
                       tileweave::NativeStream stream);

}  // namespace examples

#include "examples/04_unintegrated_op/relu.h"

namespace examples {
namespace {

__global__ void relu(const float* from, float* to, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = fmaxf(from[i], 0.0F);
}

}  // namespace

void enqueue_relu_cuda(const float* from, float* to, std::int64_t count,
                       tileweave::NativeStream stream) {
  constexpr int kThreads = 256;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  relu<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(from, to, count);
}

}  // namespace examples

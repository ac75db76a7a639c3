#include "tileweave/models/random_fill.h"
#include "tileweave/runtime/cuda/cuda_status.cuh"

namespace tileweave {
namespace {

constexpr int kFillBlocks = 1056;
constexpr int kFillThreads = 256;

__global__ void fill_kernel(BFloat16* to, RandomFill fill) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
       i < fill.count; i += step) {
    to[i] = random_element(fill, fill.first + i);
  }
}

}  // namespace

void fill_random_cuda(BFloat16* to, const RandomFill& fill) {
  if (fill.count == 0) return;
  fill_kernel<<<kFillBlocks, kFillThreads>>>(to, fill);
  check_cuda(cudaGetLastError(), "fill with random numbers");
  check_cuda(cudaDeviceSynchronize(), "fill with random numbers");
}

}  // namespace tileweave

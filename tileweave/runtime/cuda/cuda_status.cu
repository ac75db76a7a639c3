#include "tileweave/core/error.h"
#include "tileweave/runtime/cuda/cuda_status.cuh"

namespace tileweave {

std::string describe(cudaError_t status) {
  return std::string(cudaGetErrorString(status)) + " (" + cudaGetErrorName(status) + ")";
}

void throw_cuda_error(cudaError_t status, std::string operation) {
  cudaGetLastError();
  throw Error(std::move(operation), "CUDA must succeed", describe(status));
}

CurrentDevice::CurrentDevice(int device_index) : now_(device_index) {
  check_cuda(cudaGetDevice(&before_), "ask for the current GPU");
  if (before_ != now_) check_cuda(cudaSetDevice(now_), "make a GPU current");
}

CurrentDevice::~CurrentDevice() {
  if (before_ != now_) cudaSetDevice(before_);
}

}  // namespace tileweave

// CUDA status codes become Error: the operation, and CUDA's own words for what went wrong.
//
// Every call of the runtime API in this folder goes through `check_cuda`. An error that CUDA would
// report again at the next call (a non-sticky last error) is cleared, so that one failed allocation
// does not poison later checks.
#pragma once

#include <cuda_runtime.h>

#include <string>

namespace tileweave {

/// "out of memory (cudaErrorMemoryAllocation)".
std::string describe(cudaError_t status);

[[noreturn]] void throw_cuda_error(cudaError_t status, std::string operation);

inline void check_cuda(cudaError_t status, const char* operation) {
  if (status != cudaSuccess) throw_cuda_error(status, operation);
}

/// Makes a GPU current for a scope; the caller's choice comes back at its end.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device_index);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  int now_ = 0;
};

}  // namespace tileweave

// Ends with status 0 when a CUDA device can be used, else with 77 and one sentence: why not.
#include <cuda_runtime.h>

#include <cstdio>

int main() {
  int num_devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&num_devices);
  if (status == cudaSuccess && num_devices > 0) return 0;
  std::printf("skipped: this test needs a GPU, and there is none (%s)\n",
              status != cudaSuccess ? cudaGetErrorString(status) : "no device");
  return 77;
}

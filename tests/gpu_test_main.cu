// main() of every GPU test executable. Listing the cases needs no GPU; running one without a GPU
// ends with status 77, which ctest reports as skipped, by name.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  int num_devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&num_devices);
  if (status != cudaSuccess || num_devices == 0) {
    const char* reason = status != cudaSuccess ? cudaGetErrorString(status) : "no device";
    std::printf("skipped: this test needs a GPU, and there is none (%s)\n", reason);
    return 77;
  }
  return RUN_ALL_TESTS();
}

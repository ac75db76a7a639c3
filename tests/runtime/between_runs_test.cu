// Calls between runs on a GPU: eager on a stream, and captured into the graph of a run.
#include <cuda_runtime.h>

#include "tests/runtime/between_runs.h"
#include "tests/runtime/cuda/watchdog.h"
#include "tests/runtime/gpu_devices.h"

namespace tileweave {
namespace {

__global__ void add_to_all(std::uint32_t* x, std::size_t count) {
  for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) x[i] += kAdded;
}

TEST(BetweenRunsOnGpu, AChainOfRunsAdvancesAConstantInEveryModeAndSubmission) {
  const Watchdog watchdog{std::chrono::seconds(60), "BetweenRunsOnGpu"};
  int calls = 0;
  expect_chained_runs(*open_mix_gpu(), 2'000, [&calls](std::uint32_t* x, std::size_t count) {
    return [&calls, x, count](NativeStream stream) {
      ++calls;
      add_to_all<<<1, 64, 0, static_cast<cudaStream_t>(stream)>>>(x, count);
    };
  });
  // Twice eager, once per run; twice recorded, once for all runs.
  EXPECT_EQ(calls, 2 * kChainedRuns + 2);
}

}  // namespace
}  // namespace tileweave

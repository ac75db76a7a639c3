// Kernels that are another library's call on a GPU: eager, recorded, and captured by the user.
#include <cuda_runtime.h>

#include <memory>

#include "tests/runtime/cuda/watchdog.h"
#include "tests/runtime/gpu_devices.h"
#include "tests/runtime/vendor_calls.h"

namespace tileweave {
namespace {

KernelImpl copy_kernel(int& calls) {
  return {.name = "copy",
          .vendor_call = VendorCall{
              .prepare = [&calls](Device&, const std::byte*) { ++calls; },
              .enqueue =
                  [](NativeStream stream, const std::byte* args) {
                    const CopyArgs& copy = copy_args(args);
                    cudaMemcpyAsync(copy.to, copy.from, copy.count * sizeof(std::uint32_t),
                                    cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(stream));
                  }}};
}

TEST(VendorCallsOnGpu, BetweenTileKernelsGiveTheSameBitsInEveryModeAndSubmission) {
  const Watchdog watchdog{std::chrono::seconds(60), "VendorCallsOnGpu"};
  int calls = 0;
  const auto device = open_mix_gpu();
  device->kernels().add(copy_kernel(calls));
  expect_right_in_every_mode(*device, 2'000, calls);
}

TEST(VendorCallsOnGpu, OnAStreamThatTheUserCapturesAreReplayedInOrder) {
  const Watchdog watchdog{std::chrono::seconds(60), "VendorCallsOnGpu"};
  int calls = 0;
  const auto device = open_mix_gpu();
  device->kernels().add(copy_kernel(calls));
  AsyncStream stream(*device);
  const TensorSpec spec{.name = "copy", .shape = {32}, .dtype = DType::kU32};
  TensorSpec constant = spec;
  constant.kind = TensorKind::kConstant;
  const StreamTensor from = stream.tensor(constant);
  const StreamTensor middle = stream.tensor(spec);
  const StreamTensor to = stream.tensor(spec);
  cudaStream_t user = nullptr;
  ASSERT_EQ(cudaStreamCreate(&user), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(user, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  stream.wait_for(user);
  stream.begin_run();
  stream.launch(copy_node(from.id(), middle.id(), 32));
  stream.launch(copy_node(middle.id(), to.id(), 32));
  stream.end_run();
  stream.block(user);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(user, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(calls, 2);
  for (std::uint32_t run = 1; run <= 5; ++run) {
    const std::vector<std::uint32_t> values(32, run);
    std::vector<std::uint32_t> got(32);
    device->upload(from.address(), values.data(), 128);
    ASSERT_EQ(cudaGraphLaunch(executable, user), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(user), cudaSuccess);
    device->download(got.data(), to.address(), 128);
    EXPECT_EQ(got, values);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(user);
}

}  // namespace
}  // namespace tileweave

// AsyncStream on a GPU: the bits of the host evaluation, the user's own streams before and after,
// and its launches captured into a graph by the user.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/runtime/cuda/watchdog.h"
#include "tests/runtime/gpu_devices.h"
#include "tests/runtime/streamed_plan.h"

namespace tileweave {
namespace {

class AsyncStreamOnGpu : public testing::Test {
 private:
  Watchdog watchdog_{std::chrono::seconds(60), "AsyncStreamOnGpu"};
};

TEST_F(AsyncStreamOnGpu, GivesTheBitsOfTheHostOnRandomPlans) {
  const auto device = open_mix_gpu();
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const MixPlan mix = random_plan({.seed = seed, .max_delay_ns = 10'000U});
    ASSERT_TRUE(streams_like_the_oracle(
        *device, mix,
        {.launch_order = seed % 2 == 0 ? LaunchOrder::kTrusted : LaunchOrder::kNotTrusted,
         .deadline_ns = 2'000'000'000,
         .max_in_flight = static_cast<std::int32_t>(1 + seed % 9)}))
        << "seed " << seed;
  }
}

TEST_F(AsyncStreamOnGpu, IsCapturedByTheUserAndReplayed) {
  const auto device = open_mix_gpu();
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const MixPlan mix = random_plan({.seed = seed});
    StreamedPlan streamed(*device, mix, {.deadline_ns = 2'000'000'000});
    MixOracle oracle(mix);
    // What a run allocates, and the tables it uploads, are there after a few runs.
    for (int warm_up = 0; warm_up < 4; ++warm_up) {
      streamed.run();
      oracle.run();
    }
    streamed.stream.synchronize();

    cudaStream_t user = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&user, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(user, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    streamed.stream.wait_for(user);
    streamed.run();
    streamed.stream.block(user);
    ASSERT_EQ(cudaStreamEndCapture(user, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    for (int replay = 0; replay < 20; ++replay) {
      ASSERT_EQ(cudaGraphLaunch(executable, user), cudaSuccess);
      oracle.run();
    }
    ASSERT_EQ(cudaStreamSynchronize(user), cudaSuccess);
    streamed.stream.synchronize();
    EXPECT_TRUE(streamed.same_bits(oracle));
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(user);
  }
}

}  // namespace
}  // namespace tileweave

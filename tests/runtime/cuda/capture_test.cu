// Work of the user's own streams before and after a queue's, and a queue inside the user's capture.
#include "tests/runtime/cuda/chain.cuh"
#include "tests/runtime/cuda/watchdog.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

__global__ void write_late(std::uint32_t* word, std::uint32_t value, long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
  *word = value;
}

__global__ void add_late(std::uint32_t* word, long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
  *word += 1;
}

constexpr long long kLate = 400'000;  // cycles: about 0.2 ms

void must(cudaError_t status) {
  ASSERT_EQ(status, cudaSuccess) << cudaGetErrorString(status);
}

class UserStream : public GpuTest {
 protected:
  UserStream() : device_(open_cuda_device()) {
    cudaStreamCreateWithFlags(&user_, cudaStreamNonBlocking);
  }
  ~UserStream() override { cudaStreamDestroy(user_); }

  /// The first word that the chain wrote, copied on the user's stream.
  void copy_result(const Chain& chain, std::uint32_t* to) {
    must(cudaMemcpyAsync(to, chain.output_of(chain.nodes().back().node), sizeof(std::uint32_t),
                         cudaMemcpyDeviceToDevice, user_));
  }

  std::unique_ptr<Device> device_;
  cudaStream_t user_ = nullptr;
};

TEST_F(UserStream, ComesBeforeAndAfterTheQueue) {
  for (const int num_streams : {1, 2, 3}) {
    const auto queue = device_->open_queue(num_streams);
    Chain chain(*device_, {.num_nodes = 9,
                           .num_streams = num_streams,
                           .release = Release::kLaunchCompleted,
                           .delay_ns = 20'000});
    auto* copied = static_cast<std::uint32_t*>(device_->allocate(sizeof(std::uint32_t)));
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      write_late<<<1, 1, 0, user_>>>(chain.seed_word(), seed, kLate);
      queue->wait_for(user_);
      chain.launch(*queue);
      queue->block(user_);
      copy_result(chain, copied);
      must(cudaStreamSynchronize(user_));
      std::uint32_t got = 0;
      device_->download(&got, copied, sizeof(got));
      ASSERT_EQ(got, chain.expected(seed)[0]) << "seed " << seed << ", streams " << num_streams;
    }
    queue->synchronize();
    device_->release(copied);
  }
}

TEST_F(UserStream, ComesBeforeAndAfterARecording) {
  const auto queue = device_->open_queue(2);
  Chain chain(*device_, {.num_nodes = 9, .release = Release::kLaunchCompleted, .delay_ns = 20'000});
  queue->begin_recording();
  chain.launch(*queue);
  const auto recording = queue->end_recording();
  auto* copied = static_cast<std::uint32_t*>(device_->allocate(sizeof(std::uint32_t)));
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    write_late<<<1, 1, 0, user_>>>(chain.seed_word(), seed, kLate);
    queue->wait_for(user_);
    recording->replay();
    queue->block(user_);
    copy_result(chain, copied);
    must(cudaStreamSynchronize(user_));
    std::uint32_t got = 0;
    device_->download(&got, copied, sizeof(got));
    ASSERT_EQ(got, chain.expected(seed)[0]) << "seed " << seed;
  }
  queue->synchronize();
  device_->release(copied);
}

TEST_F(UserStream, CapturesWhatTheQueueLaunches) {
  for (const Release release : {Release::kCompleted, Release::kProgrammatic,
                                Release::kLaunchCompleted, Release::kAllBegun}) {
    for (const int num_streams : {1, 2, 3}) {
      SCOPED_TRACE(std::string(name_of(release)) + ", streams " + std::to_string(num_streams));
      const auto queue = device_->open_queue(num_streams);
      Chain chain(
          *device_,
          {.num_nodes = 9, .num_streams = num_streams, .release = release, .delay_ns = 10'000});
      auto* copied = static_cast<std::uint32_t*>(device_->allocate(sizeof(std::uint32_t)));
      chain.launch(*queue);  // in flight when the capture begins
      EXPECT_LE(queue->num_completed(), 10);

      cudaGraph_t graph = nullptr;
      cudaGraphExec_t executable = nullptr;
      must(cudaStreamBeginCapture(user_, cudaStreamCaptureModeThreadLocal));
      add_late<<<1, 1, 0, user_>>>(chain.seed_word(), kLate);
      queue->wait_for(user_);
      chain.launch(*queue);
      queue->wait_until_completed(19);
      EXPECT_EQ(queue->num_completed(), 20);
      queue->block(user_);
      copy_result(chain, copied);
      must(cudaStreamEndCapture(user_, &graph));
      must(cudaGraphInstantiate(&executable, graph, 0));
      must(cudaGraphDestroy(graph));
      queue->synchronize();

      for (std::uint32_t run = 1; run <= 10; ++run) {
        must(cudaGraphLaunch(executable, user_));
        must(cudaStreamSynchronize(user_));
        std::uint32_t got = 0;
        device_->download(&got, copied, sizeof(got));
        ASSERT_EQ(got, chain.expected(run)[0]) << "run " << run;
      }
      // The queue works as before when the capture is over.
      chain.launch(*queue);
      queue->synchronize();
      EXPECT_EQ(chain.result(), chain.expected(10));
      must(cudaGraphExecDestroy(executable));
      device_->release(copied);
    }
  }
}

TEST_F(UserStream, ThatIsBeingCapturedMustBeWaitedForFirst) {
  const auto queue = device_->open_queue(1);
  must(cudaStreamBeginCapture(user_, cudaStreamCaptureModeThreadLocal));
  EXPECT_THROW(queue->block(user_), Error);
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(user_, &graph));
  cudaGraphDestroy(graph);
}

TEST_F(UserStream, AnAbandonedRecordingLeavesTheDeviceUsable) {
  Chain chain(*device_, {.num_nodes = 4});
  {
    const auto queue = device_->open_queue(2);
    queue->begin_recording();
    for (const Launch& node : chain.nodes()) queue->launch(node);
  }
  const auto queue = device_->open_queue(2);
  chain.launch(*queue);
  queue->synchronize();
  EXPECT_EQ(chain.result(), chain.expected(0));
}

}  // namespace
}  // namespace tileweave

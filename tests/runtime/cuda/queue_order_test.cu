// Every release rule, on 1 to 3 streams, launch by launch and recorded, over many runs.
#include <array>
#include <string>
#include <tuple>

#include "tests/runtime/cuda/chain.cuh"
#include "tests/runtime/cuda/watchdog.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

enum class Submission { kEager, kRecorded };

using Case = std::tuple<Release, int, Submission>;

class EveryRelease : public GpuTest, public testing::WithParamInterface<Case> {};

TEST_P(EveryRelease, GivesTheSameBitsAsTheHost) {
  const auto [release, num_streams, submission] = GetParam();
  const auto device = open_cuda_device();
  const auto queue = device->open_queue(num_streams);
  for (const std::uint32_t start : {0U, 0x80000000U - 700U, 0xffffffffU - 700U}) {
    SCOPED_TRACE("start count " + std::to_string(start));
    Chain chain(*device, {.num_nodes = 24,
                          .num_blocks = 132,
                          .num_streams = num_streams,
                          .release = release,
                          .delay_ns = 3'000,
                          .start_count = start});
    std::unique_ptr<Recording> recording;
    if (submission == Submission::kRecorded) {
      queue->begin_recording();
      chain.launch(*queue);
      recording = queue->end_recording();
    }
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      chain.set_seed(seed);
      for (int run = 0; run < 5; ++run) {  // back to back, no host in between
        if (recording != nullptr) {
          recording->replay();
        } else {
          chain.launch(*queue);
        }
      }
      queue->synchronize();
      ASSERT_EQ(chain.abort_word(), 0U) << "seed " << seed;
      ASSERT_EQ(chain.result(), chain.expected(seed)) << "seed " << seed;
    }
  }
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const auto [release, num_streams, submission] = info.param;
  const std::array<const char*, 5> names = {"Completed", "Programmatic", "LaunchCompleted",
                                            "AllBegun", "FirstBegun"};
  return std::string(names[static_cast<std::size_t>(release)]) + std::to_string(num_streams) +
         (submission == Submission::kEager ? "StreamsEager" : "StreamsRecorded");
}

INSTANTIATE_TEST_SUITE_P(
    Queue, EveryRelease,
    testing::Combine(testing::Values(Release::kCompleted, Release::kProgrammatic,
                                     Release::kLaunchCompleted, Release::kAllBegun,
                                     Release::kFirstBegun),
                     testing::Values(1, 2, 3),
                     testing::Values(Submission::kEager, Submission::kRecorded)),
    case_name);

class QueueOrder : public GpuTest {
 protected:
  /// Nanoseconds by which the last block of node 1 began before the last block of node 0 ended.
  std::int64_t lead(Release release, Submission submission) {
    const auto device = open_cuda_device();
    const auto queue = device->open_queue(2);
    Chain chain(*device, {.num_nodes = 2,
                          .num_blocks = 64,
                          .release = release,
                          .delay_ns = 200'000,
                          .measure = true});
    std::unique_ptr<Recording> recording;
    if (submission == Submission::kRecorded) {
      queue->begin_recording();
      chain.launch(*queue);
      recording = queue->end_recording();
    }
    for (int run = 0; run < 3; ++run) {
      if (recording != nullptr) {
        recording->replay();
      } else {
        chain.launch(*queue);
      }
      queue->synchronize();
    }
    EXPECT_EQ(chain.result(), chain.expected(0));
    const auto first = chain.times(0);
    const auto second = chain.times(1);
    std::uint64_t end = 0;
    std::uint64_t begin = 0;
    for (std::size_t b = 0; b < first.size(); b += 2) end = std::max(end, first[b + 1]);
    for (std::size_t b = 0; b < second.size(); b += 2) begin = std::max(begin, second[b]);
    return static_cast<std::int64_t>(end) - static_cast<std::int64_t>(begin);
  }
};

TEST_F(QueueOrder, CompletionKeepsKernelsApart) {
  EXPECT_LE(lead(Release::kCompleted, Submission::kEager), 0);
  EXPECT_LE(lead(Release::kCompleted, Submission::kRecorded), 0);
}

TEST_F(QueueOrder, LaunchCompletionLetsThemOverlap) {
  EXPECT_GT(lead(Release::kLaunchCompleted, Submission::kEager), 0);
  EXPECT_GT(lead(Release::kLaunchCompleted, Submission::kRecorded), 0);
}

TEST_F(QueueOrder, WaitKernelsLetThemOverlap) {
  EXPECT_GT(lead(Release::kAllBegun, Submission::kEager), 0);
  EXPECT_GT(lead(Release::kAllBegun, Submission::kRecorded), 0);
  EXPECT_GT(lead(Release::kFirstBegun, Submission::kRecorded), 0);
}

/// Two nodes on stream 0, then one on stream 1 that waits for the first: it has begun before the
/// second ends only when it waits for an event behind the first, not for what stream 0 holds.
TEST_F(QueueOrder, CompletionIsThatOfTheNamedLaunchAlone) {
  const auto device = open_cuda_device();
  const auto queue = device->open_queue(2);
  for (const Submission submission : {Submission::kEager, Submission::kRecorded}) {
    SCOPED_TRACE(submission == Submission::kEager ? "eager" : "recorded");
    const ChainShape shape{
        .num_blocks = 32, .num_streams = 1, .delay_ns = 400'000, .measure = true};
    ChainShape two = shape;
    two.num_nodes = 2;
    ChainShape one = shape;
    one.num_nodes = 1;
    Chain first(*device, two);
    Chain second(*device, one);
    const auto launch_all = [&] {
      Launch named = first.nodes()[0];
      named.end_event = EndEvent::kRecorded;
      queue->launch(named);
      queue->launch(first.nodes()[1]);
      Launch waiting = second.nodes()[0];
      waiting.node = 100;
      waiting.stream = 1;
      waiting.after = {{named.node, Release::kCompleted}};
      queue->launch(waiting);
      queue->barrier();
      queue->launch(first.base_update());
      Launch update = second.base_update();
      update.node = 101;
      queue->launch(update);
      queue->barrier();
    };
    std::unique_ptr<Recording> recording;
    if (submission == Submission::kRecorded) {
      queue->begin_recording();
      launch_all();
      recording = queue->end_recording();
    }
    for (int run = 0; run < 3; ++run) {
      if (recording != nullptr) {
        recording->replay();
      } else {
        launch_all();
      }
      queue->synchronize();
    }
    const auto last_end = [](const std::vector<std::uint64_t>& times) {
      std::uint64_t end = 0;
      for (std::size_t b = 0; b < times.size(); b += 2) end = std::max(end, times[b + 1]);
      return end;
    };
    const std::vector<std::uint64_t> waiting = second.times(0);
    EXPECT_GE(waiting[0], last_end(first.times(0)));
    EXPECT_LT(waiting[0], last_end(first.times(1)));
  }
}

TEST_F(QueueOrder, ACallInTheMiddleWaitsForAllAndHoldsUpAll) {
  const auto device = open_cuda_device();
  const auto queue = device->open_queue(3);
  // Two chains of which the second is fed by a copy that knows nothing of tiles.
  Chain first(*device, {.num_nodes = 7, .num_streams = 3, .delay_ns = 20'000});
  Chain second(
      *device,
      {.num_nodes = 7, .num_streams = 3, .release = Release::kLaunchCompleted, .delay_ns = 20'000});
  const auto launch_all = [&] {
    for (const Launch& node : first.nodes()) queue->launch(node);
    Launch copy{.node = 100, .name = "copy", .stream = 1};
    copy.call = [&](NativeStream stream) {
      cudaMemcpyAsync(second.seed_word(), first.output_of(6), sizeof(std::uint32_t),
                      cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(stream));
    };
    queue->launch(copy);
    for (const Launch& node : second.nodes()) queue->launch(node);
    queue->barrier();
    queue->launch(first.base_update());
    queue->launch(second.base_update());
    queue->barrier();
  };
  const auto check = [&](std::uint32_t seed) {
    queue->synchronize();
    const auto middle = first.expected(seed);
    ASSERT_EQ(first.result(), middle);
    ASSERT_EQ(second.result(), second.expected(middle[0]));
  };
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    first.set_seed(seed);
    launch_all();
    check(seed);
  }
  queue->begin_recording();
  launch_all();
  const auto recording = queue->end_recording();
  for (std::uint32_t seed = 11; seed <= 20; ++seed) {
    first.set_seed(seed);
    recording->replay();
    check(seed);
  }
}

TEST_F(QueueOrder, ReplaysAndLaunchesFollowOneAnother) {
  const auto device = open_cuda_device();
  const auto queue = device->open_queue(2);
  Chain chain(*device, {.release = Release::kLaunchCompleted, .delay_ns = 2'000});
  queue->begin_recording();
  chain.launch(*queue);
  const auto recording = queue->end_recording();
  chain.set_seed(5);
  for (int run = 0; run < 50; ++run) {
    recording->replay();
    chain.launch(*queue);
  }
  queue->synchronize();
  EXPECT_EQ(chain.abort_word(), 0U);
  EXPECT_EQ(chain.result(), chain.expected(5));
}

TEST_F(QueueOrder, CompletedLaunchesAreCountedInOrder) {
  const auto device = open_cuda_device();
  const auto queue = device->open_queue(2);
  Chain chain(*device,
              {.num_nodes = 30, .release = Release::kLaunchCompleted, .delay_ns = 100'000});
  chain.launch(*queue);  // 31 launches
  EXPECT_LE(queue->num_completed(), 31);
  queue->wait_until_completed(30);  // the last one
  EXPECT_EQ(queue->num_completed(), 31);
  EXPECT_EQ(chain.result(), chain.expected(0));
  chain.launch(*queue);
  queue->synchronize();
  EXPECT_EQ(queue->num_completed(), 62);
  EXPECT_THROW(queue->wait_until_completed(62), Error);
}

TEST_F(QueueOrder, ParametersOfTheWrongSizeAreRefusedByName) {
  const auto device = open_cuda_device();
  const auto queue = device->open_queue(1);
  Chain chain(*device, {.num_nodes = 2, .num_streams = 1});
  Launch wrong = chain.nodes()[0];
  wrong.args.pop_back();
  try {
    queue->launch(wrong);
    FAIL() << "launched";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("`node 0`"), std::string::npos) << error.what();
  }
  chain.launch(*queue);
  queue->synchronize();
  EXPECT_EQ(chain.result(), chain.expected(0));
}

TEST_F(QueueOrder, ANodeAfterAnUnknownOneIsRefused) {
  const auto device = open_cuda_device();
  const auto queue = device->open_queue(1);
  Chain chain(*device, {.num_nodes = 2, .num_streams = 1});
  EXPECT_THROW(queue->launch(chain.nodes()[1]), Error);
}

TEST_F(QueueOrder, ABlockTooLargeIsRefusedAndTheQueueGoesOn) {
  const auto device = open_cuda_device();
  const auto queue = device->open_queue(1);
  Chain chain(*device, {.num_nodes = 2, .num_streams = 1});
  Launch large = chain.nodes()[0];
  large.resources.shared_bytes = 10 << 20;
  EXPECT_THROW(queue->launch(large), Error);
  chain.launch(*queue);
  queue->synchronize();
  EXPECT_EQ(chain.result(), chain.expected(0));
}

}  // namespace
}  // namespace tileweave

// Planted hangs: every wait leaves within its deadline, the report says what was missing, and the
// device goes on after a reset.
#include <chrono>

#include "tests/runtime/cuda/chain.cuh"
#include "tests/runtime/cuda/watchdog.h"
#include "tileweave/sync/mbarrier.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

constexpr std::uint64_t kDeadlineNs = 300'000'000;
constexpr auto kSlack = std::chrono::seconds(1);

class PlantedHang : public GpuTest {
 protected:
  PlantedHang() : device_(open_cuda_device()), queue_(device_->open_queue(2)) {}

  /// Runs the queue empty; fails when that takes longer than the deadline and a second.
  void drain(std::chrono::steady_clock::time_point start) {
    queue_->synchronize();
    const auto took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took, std::chrono::nanoseconds(kDeadlineNs) + kSlack);
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<LaunchQueue> queue_;
};

TEST_F(PlantedHang, OneArrivalTooManyIsReportedAndAResetMendsIt) {
  for (const Release release : {Release::kLaunchCompleted, Release::kCompleted, Release::kAllBegun,
                                Release::kProgrammatic}) {
    SCOPED_TRACE(name_of(release));
    ChainShape shape{.num_nodes = 12,
                     .num_blocks = 132,
                     .release = release,
                     .deadline_ns = kDeadlineNs,
                     .hang_at = 5};
    Chain chain(*device_, shape);
    const auto start = std::chrono::steady_clock::now();
    chain.launch(*queue_);
    chain.launch(*queue_);  // a second run behind the first drains as well
    drain(start);
    const HangReport report = chain.report();
    EXPECT_NE(chain.abort_word(), 0U);
    ASSERT_EQ(report.state, HangReport::kComplete);
    EXPECT_EQ(report.kind, static_cast<std::uint32_t>(WaitKind::kSemaphore));
    EXPECT_EQ(report.operand, 0U);
    EXPECT_EQ(report.base, 0U);
    if (report.node == 5) {
      EXPECT_EQ(report.seen, 132U);
      EXPECT_EQ(report.target, 133U);
    } else {
      // The node after it, in flight beside it, waits for it in turn and may look first.
      EXPECT_EQ(report.node, 6U);
      EXPECT_NE(release, Release::kCompleted);
      EXPECT_EQ(report.seen, 0U);
      EXPECT_EQ(report.target, 132U);
    }
    EXPECT_GE(report.waited_ns, kDeadlineNs);

    chain.reset();
    shape.hang_at = -1;
    Chain healthy(*device_, shape);
    queue_->begin_recording();
    healthy.launch(*queue_);
    const auto recording = queue_->end_recording();
    for (int run = 0; run < 1000; ++run) recording->replay();
    queue_->synchronize();
    EXPECT_EQ(healthy.abort_word(), 0U);
    EXPECT_EQ(healthy.result(), healthy.expected(0));
  }
}

TEST_F(PlantedHang, ARecordingDrainsAndRunsAgainAfterAReset) {
  // The fault is in the words, not in the launches: one arrival is taken away before the replay.
  Chain chain(*device_,
              {.num_nodes = 12, .release = Release::kLaunchCompleted, .deadline_ns = kDeadlineNs});
  queue_->begin_recording();
  chain.launch(*queue_);
  const auto recording = queue_->end_recording();
  recording->replay();
  queue_->synchronize();
  const std::uint32_t short_by_one = 131;
  SyncContext<2> context{};
  std::copy(chain.nodes()[3].context.begin(), chain.nodes()[3].context.end(),
            reinterpret_cast<std::byte*>(&context));
  device_->upload(context.operands[1].words, &short_by_one, sizeof(short_by_one));
  const auto start = std::chrono::steady_clock::now();
  recording->replay();
  drain(start);
  const HangReport report = chain.report();
  ASSERT_EQ(report.state, HangReport::kComplete);
  EXPECT_TRUE(report.node == 4 || report.node == 5) << report.node;
  EXPECT_EQ(report.seen - report.base, report.node == 4 ? 131U : 0U);
  chain.reset();
  for (int run = 0; run < 1000; ++run) recording->replay();
  queue_->synchronize();
  EXPECT_EQ(chain.abort_word(), 0U);
  EXPECT_EQ(chain.result(), chain.expected(0));
}

TEST_F(PlantedHang, AWaitKernelReportsTheBlocksThatNeverBegan) {
  Chain chain(*device_,
              {.num_nodes = 3, .release = Release::kAllBegun, .deadline_ns = kDeadlineNs});
  // The second node's blocks do not count themselves.
  Launch silent = chain.nodes()[1];
  SyncContext<2> context{};
  std::copy(silent.context.begin(), silent.context.end(), reinterpret_cast<std::byte*>(&context));
  context.header.flags = 0;
  silent.context = to_bytes(context);
  const auto start = std::chrono::steady_clock::now();
  queue_->launch(chain.nodes()[0]);
  queue_->launch(silent);
  queue_->launch(chain.nodes()[2]);
  drain(start);
  const HangReport report = chain.report();
  ASSERT_EQ(report.state, HangReport::kComplete);
  EXPECT_EQ(report.kind, static_cast<std::uint32_t>(WaitKind::kBegun));
  EXPECT_EQ(report.node, 2U);
  EXPECT_EQ(report.tile, 1U);
  EXPECT_EQ(report.seen, 0U);
  EXPECT_EQ(report.target, 132U);
}

/// A producer warp waits for tiles that never come; the other warps sit in an mbarrier that it
/// would complete.
__global__ void __launch_bounds__(128)
    warp_specialised(const __grid_constant__ SyncContext<1> context) {
  __shared__ std::uint64_t full;
  __shared__ std::uint32_t left;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    left = 0;
  }
  ptx::mbarrier_init_fence();
  __syncthreads();
  if (threadIdx.x < 32) {
    SyncCta<AtomicsCudaWarp, 1> sync(context);
    const Ready ready = sync.wait_input(0, {0});
    if (ready && threadIdx.x == 0) ptx::mbarrier_arrive(&full);
  } else if (!wait_mbarrier(&full, 0, /*stage=*/7, context.header) && threadIdx.x % 32 == 0) {
    atomicAdd(&left, 1);
  }
  __syncthreads();
}

TEST_F(PlantedHang, ConsumersInAnMbarrierLeaveWhenTheProducerWarpGaveUp) {
  int major = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), cudaSuccess);
  if (major < 9) GTEST_SKIP() << "mbarrier waits need compute capability 9.0";
  Chain chain(*device_, {.num_nodes = 1});  // for its words, abort word and report
  for (const int blocks : {1, 264}) {
    SCOPED_TRACE(std::to_string(blocks) + " blocks");
    chain.reset();
    SyncContext<2> two{};
    std::copy(chain.nodes()[0].context.begin(), chain.nodes()[0].context.end(),
              reinterpret_cast<std::byte*>(&two));
    SyncContext<1> one{};
    one.header = two.header;
    one.header.deadline_ns = kDeadlineNs;
    one.set(0, {two.operands[1], two.tiles[1]});
    const KernelImpl kernel{.name = "warp_specialised",
                            .num_sync_slots = 1,
                            .cuda_function = reinterpret_cast<const void*>(&warp_specialised)};
    const auto start = std::chrono::steady_clock::now();
    queue_->launch({.node = 0,
                    .name = "warp_specialised",
                    .kernel = &kernel,
                    .num_blocks = blocks,
                    .resources = {.threads = 128},
                    .context = to_bytes(one),
                    .abort = two.header.abort});
    drain(start);
    const HangReport report = chain.report();
    ASSERT_EQ(report.state, HangReport::kComplete);
    // Whichever wait expires first reports; both kinds say what was missing.
    if (report.kind == static_cast<std::uint32_t>(WaitKind::kMbarrier)) {
      EXPECT_EQ(report.tile, 7U);
    } else {
      EXPECT_EQ(report.target, 132U);
      EXPECT_EQ(report.seen, 0U);
    }
  }
}

}  // namespace
}  // namespace tileweave

// The GPU as a Device: limits, memory, what compiled kernels need, parts of a GPU.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <set>

#include "tests/runtime/cuda/chain.cuh"
#include "tests/runtime/cuda/watchdog.h"
#include "tileweave/core/error.h"
#include "tileweave/plan/resources.h"
#include "tileweave/sync/ptx_launch.cuh"

namespace tileweave {
namespace {

__global__ void __launch_bounds__(256) modest(float* out) {
  out[threadIdx.x] = 1.0F;
}

__global__ void __launch_bounds__(512) statically_shared(float* out) {
  __shared__ float all[6000];
  for (unsigned i = threadIdx.x; i < 6000; i += blockDim.x) all[i] = out[i];
  __syncthreads();
  out[threadIdx.x] = all[5999 - threadIdx.x];
}

__global__ void __launch_bounds__(128) dynamically_shared(float* out) {
  extern __shared__ float some[];
  some[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = some[127 - threadIdx.x];
}

__global__ void note_sm(std::uint32_t* sms) {
  if (threadIdx.x == 0) sms[blockIdx.x] = ptx::sm_index();
  const std::uint64_t start = ptx::global_timer_ns();
  while (ptx::global_timer_ns() - start < 50'000) {
  }
}

class CudaDeviceTest : public GpuTest {};

TEST_F(CudaDeviceTest, SaysWhatTheGpuHas) {
  const auto device = open_cuda_device();
  const DeviceLimits& limits = device->limits();
  EXPECT_EQ(device->name(), "cuda");
  EXPECT_FALSE(limits.name.empty());
  EXPECT_GT(limits.num_sms, 0);
  EXPECT_GE(limits.threads_per_sm, 1024);
  EXPECT_GE(limits.shared_bytes_per_sm, limits.shared_bytes_per_block);
  EXPECT_EQ(limits.warp_size, 32);
  EXPECT_GE(limits.hardware_queues, 1);
  std::printf(
      "%s: %d SMs, %d threads, %d blocks, %d registers, %lld + %lld shared bytes a block, "
      "%d hardware queues\n",
      limits.name.c_str(), limits.num_sms, limits.threads_per_sm, limits.blocks_per_sm,
      limits.registers_per_sm, static_cast<long long>(limits.shared_bytes_per_block),
      static_cast<long long>(limits.shared_reserved), limits.hardware_queues);
}

TEST_F(CudaDeviceTest, CopiesBytesBothWays) {
  const auto device = open_cuda_device();
  std::vector<std::uint32_t> values(100'000);
  std::iota(values.begin(), values.end(), 7U);
  const std::size_t bytes = values.size() * sizeof(values[0]);
  void* memory = device->allocate(bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
  device->upload(memory, values.data(), bytes);
  std::vector<std::uint32_t> back(values.size());
  device->download(back.data(), memory, bytes);
  EXPECT_EQ(back, values);
  device->fill(memory, 0xab, bytes);
  device->download(back.data(), memory, bytes);
  EXPECT_EQ(back.front(), 0xababababU);
  EXPECT_EQ(back.back(), 0xababababU);
  device->release(memory);
}

TEST_F(CudaDeviceTest, OutOfMemoryNamesTheSizeAndLeavesTheDeviceUsable) {
  const auto device = open_cuda_device();
  try {
    device->release(device->allocate(std::size_t{1} << 50));
    FAIL() << "a pebibyte was allocated";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("1024.0 TiB"), std::string::npos) << error.what();
  }
  void* memory = device->allocate(1 << 20);
  device->fill(memory, 1, 1 << 20);
  device->release(memory);
  const auto queue = device->open_queue(1);
  queue->synchronize();
}

TEST_F(CudaDeviceTest, RefusesWhatTheMachineDoesNotHave) {
  EXPECT_THROW(open_cuda_device({.device_index = 1000}), Error);
  EXPECT_THROW(open_cuda_device({.device_index = -1}), Error);
  EXPECT_THROW(open_cuda_device({.num_sms = 1'000'000}), Error);
  const auto device = open_cuda_device();
  EXPECT_THROW(device->open_queue(0), Error);
  EXPECT_THROW(device->open_queue(device->limits().hardware_queues + 1), Error);
  const KernelImpl none{.name = "none"};
  EXPECT_THROW(device->measured_resources(none, {}), Error);
}

TEST_F(CudaDeviceTest, ResidencyOfThePlanIsTheGpusOwn) {
  const auto device = open_cuda_device();
  struct Case {
    const char* name;
    const void* function;
    KernelResources declared;
  };
  const void* modest_kernel = reinterpret_cast<const void*>(&modest);
  const void* static_kernel = reinterpret_cast<const void*>(&statically_shared);
  const void* dynamic_kernel = reinterpret_cast<const void*>(&dynamically_shared);
  std::vector<Case> cases;
  for (const int threads : {32, 96, 128, 256}) {
    cases.push_back({"modest", modest_kernel, {.threads = threads}});
  }
  for (const int threads : {33, 128, 512}) {
    cases.push_back({"static", static_kernel, {.threads = threads}});
  }
  for (const std::int64_t bytes :
       {512, 1000, 48 << 10, 49 << 10, 100 << 10, 113 << 10, 114 << 10}) {
    cases.push_back({"dynamic", dynamic_kernel, {.threads = 128, .shared_bytes = bytes}});
  }
  cases.push_back({"dynamic",
                   dynamic_kernel,
                   {.threads = 128, .shared_bytes = device->limits().shared_bytes_per_block}});
  for (const auto& [name, function, declared] : cases) {
    const KernelImpl kernel{.name = name, .cuda_function = function};
    const KernelResources measured = device->measured_resources(kernel, declared);
    EXPECT_GT(measured.registers_per_thread, 0);
    EXPECT_EQ(blocks_per_sm(measured, device->limits()), device->occupancy(kernel, measured))
        << name << ", " << measured.threads << " threads, " << measured.registers_per_thread
        << " registers, " << measured.shared_bytes << " shared bytes";
  }
  const KernelImpl kernel{.name = "static", .cuda_function = static_kernel};
  EXPECT_EQ(device->measured_resources(kernel, {.threads = 512}).shared_bytes, 24'000);
}

TEST_F(CudaDeviceTest, APartRunsOnItsSmsAlone) {
  for (const int wanted : {8, 16, 64}) {
    const auto device = open_cuda_device({.num_sms = wanted});
    const int granted = device->limits().num_sms;
    EXPECT_GE(granted, wanted);
    EXPECT_LT(granted, wanted + 8);
    const KernelImpl kernel{.name = "note_sm",
                            .cuda_function = reinterpret_cast<const void*>(&note_sm)};
    constexpr int kBlocks = 1000;
    auto* sms = static_cast<std::uint32_t*>(device->allocate(kBlocks * sizeof(std::uint32_t)));
    const auto queue = device->open_queue(1);
    queue->launch({.node = 0,
                   .name = "note_sm",
                   .kernel = &kernel,
                   .num_blocks = kBlocks,
                   .resources = {.threads = 32},
                   .args = to_bytes(sms)});
    queue->synchronize();
    std::vector<std::uint32_t> seen(kBlocks);
    device->download(seen.data(), sms, kBlocks * sizeof(std::uint32_t));
    device->release(sms);
    const std::set<std::uint32_t> distinct(seen.begin(), seen.end());
    EXPECT_LE(static_cast<int>(distinct.size()), granted);
    std::printf("part of %d SMs: %d granted, blocks ran on %d\n", wanted, granted,
                static_cast<int>(distinct.size()));

    for (const Release release : {Release::kCompleted, Release::kLaunchCompleted}) {
      Chain chain(*device,
                  {.num_nodes = 9, .num_blocks = 8, .release = release, .delay_ns = 5'000});
      const auto two = device->open_queue(2);
      chain.launch(*two);
      two->begin_recording();
      chain.launch(*two);
      const auto recording = two->end_recording();
      for (int run = 0; run < 20; ++run) recording->replay();
      two->synchronize();
      EXPECT_EQ(chain.abort_word(), 0U);
      EXPECT_EQ(chain.result(), chain.expected(0));
    }
  }
}

TEST_F(CudaDeviceTest, TheWholeGpuMayBeAskedForByItsSize) {
  const int all = open_cuda_device()->limits().num_sms;
  EXPECT_EQ(open_cuda_device({.num_sms = all})->limits().num_sms, all);
}

}  // namespace
}  // namespace tileweave

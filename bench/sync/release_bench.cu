// release_bench: what a release at GPU scope costs while copies are in flight on its SM.
//
// One block an SM; one thread stores, then adds to a word with release order, and takes the time,
// while another warp of its block has bulk copies, cp.async copies or plain loads of cold memory in
// flight. Prints cycles: medians over blocks, then over repetitions. sm_90.
//
//   release_bench [REPETITIONS]
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/sync/mbarrier.cuh"

namespace {

using namespace tileweave;  // NOLINT: a program of its own

enum class InFlight { kNothing, kBulk, kCpAsync, kLoads };

constexpr int kCopyBytes = 16 * 1024;
constexpr int kThreads = 288;
constexpr int kLoaderWarp = kThreads / 32 - 1;
constexpr int kMaxCopies = 11;

struct ReleaseArgs {
  const unsigned char* cold;
  std::uint32_t* data;
  std::uint32_t* word;
  long long* cycles;  // (blocks)
  std::uint32_t* sink;
  int copies;
};

template <InFlight kWhat>
__global__ void __launch_bounds__(kThreads, 1) release_kernel(const ReleaseArgs args) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ std::uint64_t landed;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int bytes = args.copies * kCopyBytes;
  const unsigned char* from = args.cold + static_cast<std::int64_t>(blockIdx.x) * bytes;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&landed, 1);
    ptx::mbarrier_init_fence();
  }
  __syncthreads();
  std::uint32_t sum = 0;
  if (kWhat == InFlight::kBulk && warp == kLoaderWarp && lane == 0) {
    ptx::mbarrier_arrive_expect(&landed, static_cast<std::uint32_t>(bytes));
    for (int c = 0; c < args.copies; ++c) {
      ptx::bulk_load(memory + c * kCopyBytes, from + c * kCopyBytes, kCopyBytes, &landed);
    }
  }
  if (kWhat == InFlight::kCpAsync && warp == kLoaderWarp) {
    for (int at = lane * 16; at < bytes; at += 32 * 16) {
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(ptx::shared_address(memory + at)),
          "l"(from + at)
          : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  if (kWhat == InFlight::kLoads && warp >= 2) {
    uint4 values[8];
    for (int j = 0; j < 8; ++j) {
      values[j] = __ldcg(reinterpret_cast<const uint4*>(from) + threadIdx.x - 64 + j * 224);
    }
    for (const uint4& value : values) sum += value.x;
  }
  if (warp == 0) {
    const long long begin = clock64();
    while (clock64() - begin < 300) {
    }
    if (lane < 16) args.data[blockIdx.x * 16 + lane] = 1;
    __syncwarp();
    if (lane == 0) {
      const long long before = clock64();
      ptx::add_release_gpu(args.word, 1);
      args.cycles[blockIdx.x] = clock64() - before;
    }
  }
  if (kWhat == InFlight::kCpAsync) asm volatile("cp.async.wait_group 0;" ::: "memory");
  if (kWhat == InFlight::kBulk && warp == kLoaderWarp && lane == 0) {
    while (!ptx::mbarrier_try_wait(&landed, 0)) {
    }
  }
  __syncthreads();
  if (sum == 0x12345) *args.sink = sum;  // so that the loads are made
}

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw Error(what, "success", cudaGetErrorString(status));
}

/// Device memory of the bench.
class Memory {
 public:
  explicit Memory(std::size_t bytes) { check(cudaMalloc(&at_, bytes), "allocate"); }
  ~Memory() { cudaFree(at_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(at_);
  }

 private:
  void* at_ = nullptr;
};

long long median(std::vector<long long> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

constexpr std::size_t kColdBytes = std::size_t{4} << 30;

template <InFlight kWhat>
long long measure(ReleaseArgs args, int copies, int blocks, int repetitions) {
  const auto kernel = release_kernel<kWhat>;
  constexpr int kShared = kMaxCopies * kCopyBytes;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared),
        "ask for shared memory");
  const unsigned char* cold = args.cold;
  // Plain loads read 28 KiB a block.
  const std::size_t step = static_cast<std::size_t>(blocks) * std::max(copies, 2) * kCopyBytes;
  args.copies = copies;
  std::vector<long long> medians;
  std::vector<long long> cycles(static_cast<std::size_t>(blocks));
  for (int r = 0; r < repetitions; ++r) {
    args.cold = cold + step * static_cast<std::size_t>(r) % (kColdBytes - step);
    kernel<<<blocks, kThreads, kShared>>>(args);
    check(cudaGetLastError(), "launch");
    check(cudaMemcpy(cycles.data(), args.cycles, cycles.size() * sizeof(long long),
                     cudaMemcpyDeviceToHost),
          "read the cycles");
    medians.push_back(median(cycles));
  }
  return median(medians);
}

void run(int repetitions) {
  int blocks = 0;
  check(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0), "count SMs");
  const Memory cold(kColdBytes);
  const Memory data(static_cast<std::size_t>(blocks) * 64);
  const Memory words(256);
  const Memory cycles(static_cast<std::size_t>(blocks) * sizeof(long long));
  const ReleaseArgs args{.cold = cold.as<unsigned char>(),
                         .data = data.as<std::uint32_t>(),
                         .word = words.as<std::uint32_t>(),
                         .cycles = cycles.as<long long>(),
                         .sink = words.as<std::uint32_t>() + 32,
                         .copies = 0};
  const auto print = [](const char* what, long long count) {
    std::printf("%-44s %6lld cycles\n", what, count);
  };
  print("nothing", measure<InFlight::kNothing>(args, 1, blocks, repetitions));
  print("1 bulk copy of 16 KiB", measure<InFlight::kBulk>(args, 1, blocks, repetitions));
  print("5 bulk copies", measure<InFlight::kBulk>(args, 5, blocks, repetitions));
  print("11 bulk copies", measure<InFlight::kBulk>(args, kMaxCopies, blocks, repetitions));
  print("cp.async of another warp, 80 KiB",
        measure<InFlight::kCpAsync>(args, 5, blocks, repetitions));
  print("plain loads of other warps", measure<InFlight::kLoads>(args, 2, blocks, repetitions));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(std::max(1, argc > 1 ? std::atoi(argv[1]) : 11));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "tests/models/disturbance.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kMostShared = 48 << 10;
constexpr long long kMostCycles = 60'000;  // some 35 us

__global__ void __launch_bounds__(kMostThreads) hold(long long cycles) {
  extern __shared__ char shared[];
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
  if (cycles < 0) shared[threadIdx.x] = 0;  // never; the bytes are what holds others off
}

void check(cudaError_t error) {
  if (error != cudaSuccess) throw Error("disturb a GPU", "success", cudaGetErrorString(error));
}

}  // namespace

struct Disturbance::State {
  cudaStream_t stream = nullptr;
  int num_sms = 0;
  std::atomic<bool> ends{false};
  std::atomic<std::int64_t> kernels{0};
  std::thread thread;

  void run(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](long long n) {
      return static_cast<long long>(random() % static_cast<std::uint64_t>(n));
    };
    while (!ends) {
      hold<<<static_cast<unsigned>(1 + below(2 * num_sms)),
             static_cast<unsigned>(32 * (1 + below(kMostThreads / 32))),
             static_cast<std::size_t>(below(kMostShared)), stream>>>(below(kMostCycles));
      if (cudaStreamSynchronize(stream) != cudaSuccess) return;
      ++kernels;
      std::this_thread::sleep_for(std::chrono::microseconds(below(60)));
    }
  }
};

Disturbance::Disturbance(std::uint64_t seed) : state_(std::make_unique<State>()) {
  int device = 0, least = 0, greatest = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&state_->num_sms, cudaDevAttrMultiProcessorCount, device));
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  check(cudaStreamCreateWithPriority(&state_->stream, cudaStreamNonBlocking, greatest));
  state_->thread = std::thread([this, seed] { state_->run(seed); });
}

Disturbance::~Disturbance() {
  state_->ends = true;
  state_->thread.join();
  cudaStreamDestroy(state_->stream);
}

std::int64_t Disturbance::kernels() const {
  return state_->kernels;
}

}  // namespace tileweave

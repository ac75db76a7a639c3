#include "tileweave/runtime/cuda/run_timer.h"

#include <algorithm>

#include "tileweave/core/error.h"
#include "tileweave/runtime/cuda/cuda_status.cuh"

namespace tileweave {
namespace {

constexpr int kReadThreads = 512;
constexpr int kLoadsInFlight = 8;  // of 16 bytes, per thread
constexpr std::int64_t kBlockCounts[] = {132, 264, 528, 1056, 2112, 4224};

__global__ void fill_words(std::uint64_t* to, std::size_t count) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    std::uint64_t bits = i * 0x9e3779b97f4a7c15ULL;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
    to[i] = bits ^ (bits >> 27);
  }
}

/// Every thread keeps kLoadsInFlight loads in flight; what it sums up is never written, which the
/// compiler cannot know.
__global__ void __launch_bounds__(kReadThreads)
    read_all(const uint4* from, std::size_t count, std::uint32_t* never) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * kReadThreads;
  std::size_t i = blockIdx.x * static_cast<std::size_t>(kReadThreads) + threadIdx.x;
  std::uint32_t sum = 0;
  for (; i + (kLoadsInFlight - 1) * step < count; i += kLoadsInFlight * step) {
    uint4 values[kLoadsInFlight];
#pragma unroll
    for (int j = 0; j < kLoadsInFlight; ++j)
      values[j] = from[i + static_cast<std::size_t>(j) * step];
#pragma unroll
    for (int j = 0; j < kLoadsInFlight; ++j) {
      sum += values[j].x ^ values[j].y ^ values[j].z ^ values[j].w;
    }
  }
  for (; i < count; i += step) sum += from[i].x ^ from[i].y ^ from[i].z ^ from[i].w;
  if (sum == 0x12345678U && count == 1) *never = sum;
}

/// Device memory of this measurement.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) {
    check_cuda(cudaMalloc(&address_, bytes), "allocate what is to be read");
  }
  ~Buffer() { cudaFree(address_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* address() const { return address_; }

 private:
  void* address_ = nullptr;
};

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

struct RunTimer::Events {
  Events() {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
    check_cuda(cudaEventCreate(&begin), "create an event");
    check_cuda(cudaEventCreate(&end), "create an event");
  }
  ~Events() {
    if (begin != nullptr) cudaEventDestroy(begin);
    if (end != nullptr) cudaEventDestroy(end);
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  double seconds() const {
    check_cuda(cudaEventSynchronize(end), "wait for an event");
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin, end), "read the time between two events");
    return static_cast<double>(ms) * 1e-3;
  }

  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
};

RunTimer::RunTimer() : events_(std::make_unique<Events>()) {}
RunTimer::~RunTimer() = default;

double RunTimer::seconds(Program& program, const std::function<void()>& enqueue) {
  program.synchronize();
  check_cuda(cudaEventRecord(events_->begin, events_->stream), "record an event");
  program.wait_for(events_->stream);
  enqueue();
  program.block(events_->stream);
  check_cuda(cudaEventRecord(events_->end, events_->stream), "record an event");
  program.synchronize();
  return events_->seconds();
}

double ReadRateReport::best() const {
  double best = 0;
  for (const ReadRateResult& result : results) best = std::max(best, result.bytes_per_second);
  return best;
}

ReadRateReport measure_read_rate(const ReadRateOptions& options) {
  require(options.repeats >= 1, "measure the read rate", "at least one repetition");
  std::size_t free_bytes = 0, all_bytes = 0;
  check_cuda(cudaMemGetInfo(&free_bytes, &all_bytes), "ask for free memory");
  constexpr std::size_t kUnit = std::size_t{1} << 20;
  const std::size_t bytes = std::min(options.bytes, free_bytes / 10 * 9) / kUnit * kUnit;
  require(bytes > 0, "measure the read rate", "1 MiB of free memory on the GPU");
  const Buffer buffer(bytes), never(sizeof(std::uint32_t));
  fill_words<<<1056, 256>>>(static_cast<std::uint64_t*>(buffer.address()), bytes / 8);
  check_cuda(cudaGetLastError(), "fill what is to be read");
  check_cuda(cudaDeviceSynchronize(), "fill what is to be read");

  ReadRateReport report{.bytes = bytes, .results = {}};
  RunTimer::Events events;
  for (const std::int64_t blocks : kBlockCounts) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    check_cuda(cudaStreamBeginCapture(events.stream, cudaStreamCaptureModeThreadLocal),
               "record a read");
    read_all<<<static_cast<unsigned>(blocks), kReadThreads, 0, events.stream>>>(
        static_cast<const uint4*>(buffer.address()), bytes / sizeof(uint4),
        static_cast<std::uint32_t*>(never.address()));
    check_cuda(cudaStreamEndCapture(events.stream, &graph), "record a read");
    check_cuda(cudaGraphInstantiate(&ready, graph, 0), "make a graph of a read");
    std::vector<double> rates;
    for (std::int32_t i = -1; i < options.repeats; ++i) {  // one to warm up
      check_cuda(cudaEventRecord(events.begin, events.stream), "record an event");
      check_cuda(cudaGraphLaunch(ready, events.stream), "read");
      check_cuda(cudaEventRecord(events.end, events.stream), "record an event");
      const double seconds = events.seconds();
      if (i >= 0) rates.push_back(static_cast<double>(bytes) / seconds);
    }
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    report.results.push_back({blocks, median_of(rates)});
  }
  return report;
}

}  // namespace tileweave

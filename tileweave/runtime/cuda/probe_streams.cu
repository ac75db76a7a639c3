// How many streams make progress while the kernels of the others spin.
#include "tileweave/runtime/cuda/cuda_status.cuh"
#include "tileweave/runtime/cuda/probe_parts.cuh"
#include "tileweave/sync/ptx_launch.cuh"
#include "tileweave/sync/ptx_memory.cuh"

namespace tileweave {
namespace {

constexpr std::uint64_t kSpinNs = 20'000'000;

/// Counts itself and spins for a fixed time, or until everybody has begun. What it then sees is how
/// many kernels began while it held its queue.
__global__ void count_and_spin(std::uint32_t* begun, std::uint32_t* seen, std::uint32_t all) {
  ptx::add_release_gpu(begun, 1);
  const std::uint64_t start = ptx::global_timer_ns();
  std::uint32_t count = 0;
  do {
    count = ptx::load_acquire_gpu(begun);
  } while (count < all && ptx::global_timer_ns() - start < kSpinNs);
  *seen = count;
}

/// Streams that go away with their scope.
class Streams {
 public:
  Streams(const CudaDevice& device, int count) {
    for (int s = 0; s < count; ++s) all_.push_back(device.create_stream());
  }
  ~Streams() {
    for (const cudaStream_t stream : all_) cudaStreamDestroy(stream);
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  const std::vector<cudaStream_t>& all() const { return all_; }

 private:
  std::vector<cudaStream_t> all_;
};

}  // namespace

std::int32_t count_independent_streams(CudaDevice& device) {
  const auto* function = reinterpret_cast<const void*>(&count_and_spin);
  device.loader().load("count_and_spin", function);
  const ProbeBuffer<std::uint32_t> begun(device, 1);
  const ProbeBuffer<std::uint32_t> seen(device, kProbedStreams);
  const Streams streams(device, kProbedStreams);
  for (int s = 0; s < kProbedStreams; ++s) {
    count_and_spin<<<1, 1, 0, streams.all()[static_cast<std::size_t>(s)]>>>(
        begun.data(), seen.data() + s, kProbedStreams);
    check_cuda(cudaGetLastError(), "launch a kernel that spins");
  }
  for (const cudaStream_t stream : streams.all()) {
    check_cuda(cudaStreamSynchronize(stream), "count independent streams");
  }
  // Nothing that waits for the first kernel's queue can have begun before the first kernel ended.
  return static_cast<std::int32_t>(seen.read().front());
}

}  // namespace tileweave

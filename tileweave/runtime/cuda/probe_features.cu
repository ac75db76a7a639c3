// Features that the driver may or may not have, each tried on a small case with a known result.
#include <algorithm>
#include <memory>
#include <set>
#include <thread>

#include "tileweave/core/error.h"
#include "tileweave/plan/node.h"
#include "tileweave/runtime/cuda/cuda_launch_queue.cuh"
#include "tileweave/runtime/cuda/cuda_status.cuh"
#include "tileweave/runtime/cuda/driver_entry.cuh"
#include "tileweave/runtime/cuda/probe_parts.cuh"
#include "tileweave/sync/ptx_launch.cuh"
#include "tileweave/sync/ptx_memory.cuh"

namespace tileweave {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);

__global__ void note_sm(std::uint32_t* sms) {
  const std::uint64_t start = ptx::global_timer_ns();
  while (ptx::global_timer_ns() - start < 20'000) {
  }
  if (threadIdx.x == 0) sms[blockIdx.x] = ptx::sm_index() + 1;
}

__global__ void write_word(std::uint32_t* word, std::uint32_t value) {
  ptx::store_release_sys(word, value);
}

/// begin and end on the GPU's clock; lets its successor launch at once.
__global__ void hold_open(std::uint64_t* times) {
  ptx::griddep_launch_dependents();
  times[0] = ptx::global_timer_ns();
  while (ptx::global_timer_ns() - times[0] < 200'000) {
  }
  times[1] = ptx::global_timer_ns();
}

__global__ void follow_early(std::uint64_t* times) {
  times[2] = ptx::global_timer_ns();
  ptx::griddep_wait();
  times[3] = ptx::global_timer_ns();
}

struct MemoryOperations {
  PFN_cuStreamWaitValue32_v11070 wait =
      find_driver_entry<PFN_cuStreamWaitValue32_v11070>("cuStreamWaitValue32", 11070);
  PFN_cuStreamWriteValue32_v11070 write =
      find_driver_entry<PFN_cuStreamWriteValue32_v11070>("cuStreamWriteValue32", 11070);
  bool found() const { return wait != nullptr && write != nullptr; }
};

class ProbeStream {
 public:
  explicit ProbeStream(const CudaDevice& device) : stream_(device.create_stream()) {}
  ~ProbeStream() { cudaStreamDestroy(stream_); }
  ProbeStream(const ProbeStream&) = delete;
  ProbeStream& operator=(const ProbeStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_;
};

/// True when the stream empties in time. A memory operation has no deadline of its own, so
/// otherwise the word it waits for is set to the largest value, which satisfies any wait.
bool empties(const ProbeStream& stream, Device& device, std::uint32_t* word) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < kPatience) {
    const cudaError_t status = cudaStreamQuery(stream.get());
    if (status == cudaSuccess) return true;
    if (status != cudaErrorNotReady) check_cuda(status, "try memory operations");
    cudaGetLastError();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  const std::uint32_t enough = 0x7fffffff;
  device.upload(word, &enough, sizeof(enough));
  check_cuda(cudaStreamSynchronize(stream.get()), "try memory operations");
  return false;
}

MachineCheck found(Works works, std::string detail) {
  return {.name = {}, .works = works, .detail = std::move(detail)};
}

}  // namespace

MachineCheck probe_memory_operations(CudaDevice& device) {
  const MemoryOperations operations;
  if (!operations.found()) return found(Works::kNotThere, "the driver has none");
  const ProbeBuffer<std::uint32_t> words(device, 2);
  const ProbeStream waiter(device);
  const ProbeStream writer(device);
  const auto address = reinterpret_cast<CUdeviceptr>(words.data());
  check_driver(operations.wait(waiter.get(), address, 5, CU_STREAM_WAIT_VALUE_GEQ),
               "let a stream wait for a word");
  check_driver(operations.write(waiter.get(), address + 4, 7, 0), "write a word from a stream");
  check_driver(operations.write(writer.get(), address, 5, 0), "write a word from a stream");
  if (!empties(waiter, device, words.data())) {
    return found(Works::kNo, "a stream went on waiting for a word that another had written");
  }
  const auto got = words.read();
  return got[0] == 5 && got[1] == 7 ? found(Works::kYes, "wait and write on two streams")
                                    : found(Works::kNo, "the words written were others");
}

MachineCheck probe_memory_operations_in_graph(CudaDevice& device) {
  const MemoryOperations operations;
  if (!operations.found()) return found(Works::kNotThere, "the driver has none");
  const ProbeBuffer<std::uint32_t> words(device, 2);
  const ProbeStream stream(device);
  const auto address = reinterpret_cast<CUdeviceptr>(words.data());
  check_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal),
             "begin a capture");
  const CUresult wrote = operations.write(stream.get(), address, 5, 0);
  const CUresult waited = operations.wait(stream.get(), address, 5, CU_STREAM_WAIT_VALUE_GEQ);
  const CUresult again = operations.write(stream.get(), address + 4, 7, 0);
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream.get(), &graph);
  check_driver(wrote, "capture a memory operation");
  check_driver(waited, "capture a memory operation");
  check_driver(again, "capture a memory operation");
  check_cuda(ended, "capture memory operations");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(made, "make a graph of memory operations");
  const cudaError_t launched = cudaGraphLaunch(executable, stream.get());
  const bool in_time = launched == cudaSuccess && empties(stream, device, words.data());
  cudaGraphExecDestroy(executable);
  check_cuda(launched, "launch a graph of memory operations");
  if (!in_time) return found(Works::kNo, "the graph went on waiting for a word it had written");
  const auto got = words.read();
  return got[0] == 5 && got[1] == 7 ? found(Works::kYes, "wait and write captured and replayed")
                                    : found(Works::kNo, "the words written were others");
}

MachineCheck probe_programmatic_launch(CudaDevice& device) {
  const auto* first = reinterpret_cast<const void*>(&hold_open);
  const auto* second = reinterpret_cast<const void*>(&follow_early);
  device.loader().load("hold_open", first);
  if (!device.loader().load("follow_early", second).waits_for_grid_dependency) {
    return found(Works::kNotThere, "needs compute capability 9.0");
  }
  const ProbeBuffer<std::uint64_t> times(device, 4);
  const ProbeStream stream(device);
  std::uint64_t* address = times.data();
  void* parameters[] = {&address};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = stream.get();
  for (int round = 0; round < 2; ++round) {  // the first round only warms up
    config.numAttrs = 0;
    check_cuda(cudaLaunchKernelExC(&config, first, parameters), "launch a kernel");
    config.attrs = &attribute;
    config.numAttrs = 1;
    check_cuda(cudaLaunchKernelExC(&config, second, parameters), "launch programmatically");
    check_cuda(cudaStreamSynchronize(stream.get()), "try programmatic launches");
  }
  const auto t = times.read();
  if (t[3] < t[1]) return found(Works::kNo, "the grid dependency wait returned too early");
  if (t[2] >= t[1]) return found(Works::kNo, "the second kernel did not begin early");
  return found(Works::kYes, "the second kernel began " + std::to_string((t[1] - t[2]) / 1000) +
                                " us before the first ended");
}

MachineCheck probe_green_contexts(const CudaDevice& device) {
  constexpr std::int32_t kBlocks = 200;
  CudaDevice part({.device_index = device.index(), .num_sms = kSmGroup});
  const int granted = part.limits().num_sms;
  if (granted >= device.limits().num_sms) {
    return found(Works::kNo, "the part has as many SMs as the GPU");
  }
  const ProbeBuffer<std::uint32_t> sms(part, 2 * kBlocks);
  const auto queue = part.open_queue(2);
  const KernelImpl kernel{.name = "note_sm",
                          .cuda_function = reinterpret_cast<const void*>(&note_sm)};
  queue->begin_recording();
  for (std::int32_t i = 0; i < 2; ++i) {
    Launch launch{.node = i,
                  .name = "note_sm",
                  .kernel = &kernel,
                  .num_blocks = kBlocks,
                  .resources = {.threads = 32},
                  .args = to_bytes(sms.data() + i * kBlocks),
                  .stream = i,
                  .completion_event = CompletionEvent::kLaunchCompletion};
    if (i > 0) launch.after = {{.on = 0, .release = Release::kLaunchCompleted}};
    queue->launch(launch);
  }
  const auto recording = queue->end_recording();
  recording->replay();
  queue->synchronize();
  const auto seen = sms.read();
  std::set<std::uint32_t> distinct(seen.begin(), seen.end());
  if (distinct.erase(0) != 0) return found(Works::kNo, "some blocks of a graph did not run");
  const std::string numbers = std::to_string(granted) + " SMs granted, a graph's blocks ran on " +
                              std::to_string(distinct.size());
  return found(static_cast<int>(distinct.size()) <= granted ? Works::kYes : Works::kNo, numbers);
}

MachineCheck probe_mapped_memory(CudaDevice& device) {
  auto* word = static_cast<std::uint32_t*>(device.allocate_shared(sizeof(std::uint32_t)));
  *word = 1;
  const ProbeStream stream(device);
  write_word<<<1, 1, 0, stream.get()>>>(word, 42);
  const cudaError_t status = cudaStreamSynchronize(stream.get());
  const std::uint32_t got = *word;
  device.release_shared(word);
  check_cuda(status, "write to host memory");
  return got == 42 ? found(Works::kYes, "written by a kernel, read by the host")
                   : found(Works::kNo, "what a kernel wrote did not arrive");
}

MachineCheck probe_cooperative_launch(const CudaDevice& device) {
  int supported = 0;
  check_cuda(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, device.index()),
             "ask for cooperative launches");
  return supported != 0 ? found(Works::kYes, "as the driver says")
                        : found(Works::kNotThere, "as the driver says");
}

MachineCheck probe_peer_access(const CudaDevice& device) {
  int num_devices = 0;
  check_cuda(cudaGetDeviceCount(&num_devices), "count GPUs");
  if (num_devices == 1) return found(Works::kNotThere, "there is one GPU");
  int reachable = 0;
  int with_atomics = 0;
  for (int other = 0; other < num_devices; ++other) {
    if (other == device.index()) continue;
    int can = 0;
    int atomics = 0;
    check_cuda(cudaDeviceCanAccessPeer(&can, device.index(), other), "ask for peer access");
    check_cuda(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported,
                                         device.index(), other),
               "ask for peer access");
    reachable += can;
    with_atomics += can != 0 && atomics != 0 ? 1 : 0;
  }
  return found(reachable == num_devices - 1 ? Works::kYes : Works::kNo,
               std::to_string(reachable) + " of " + std::to_string(num_devices - 1) +
                   " other GPUs reachable, " + std::to_string(with_atomics) + " with atomics");
}

}  // namespace tileweave

#include "tileweave/runtime/cuda/cuda_launch_queue.cuh"

#include <array>
#include <limits>
#include <string>

#include "tileweave/core/error.h"
#include "tileweave/runtime/cuda/cuda_recording.cuh"
#include "tileweave/runtime/cuda/cuda_status.cuh"
#include "tileweave/runtime/cuda/kernel_parameters.cuh"
#include "tileweave/runtime/cuda/profiler_range.cuh"
#include "tileweave/runtime/cuda/relaxed_capture.cuh"
#include "tileweave/runtime/cuda/wait_kernel.cuh"

namespace tileweave {
namespace {

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status), "ask whether a stream is being captured");
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace

CudaLaunchQueue::CudaLaunchQueue(CudaDevice& device, std::int32_t num_streams) : device_(device) {
  const CurrentDevice current(device_.index());
  try {
    for (std::int32_t s = 0; s < num_streams; ++s) streams_.push_back(device_.create_stream());
  } catch (...) {
    for (const cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    throw;
  }
  ordinary_ = std::make_unique<StreamWindow>(streams_, EventReuse::kOn);
}

CudaLaunchQueue::~CudaLaunchQueue() {
  if (capturing_ == Capturing::kRecording) end_abandoned_recording();
  // Waits are bounded, so what still runs drains.
  for (const cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
  captured_.reset();
  ordinary_.reset();
  for (const cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  cudaGetLastError();
}

void CudaLaunchQueue::end_abandoned_recording() noexcept {
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(streams_[0], &graph) == cudaSuccess && graph != nullptr) {
    cudaGraphDestroy(graph);
  }
  cudaGetLastError();
  captured_.reset();
  capturing_ = Capturing::kNothing;
}

StreamWindow& CudaLaunchQueue::window() {
  if (capturing_ == Capturing::kNothing) return *ordinary_;
  if (capturing_ == Capturing::kUserStream) {
    bool any = false;
    for (const cudaStream_t stream : streams_) any = any || is_capturing(stream);
    if (!any) {
      captured_.reset();
      capturing_ = Capturing::kNothing;
      return *ordinary_;
    }
  }
  return *captured_;
}

void CudaLaunchQueue::launch(const Launch& launch) {
  const CurrentDevice current(device_.index());
  const ProfilerRange range(launch.name);
  if (launch.stream < 0 || launch.stream >= static_cast<std::int32_t>(streams_.size())) {
    throw Error("launch `" + launch.name + "`", "a stream below " + std::to_string(streams_.size()),
                std::to_string(launch.stream));
  }
  StreamWindow& at = window();
  if (launch.kernel == nullptr) {
    launch_call(launch, at);
  } else {
    launch_kernel(launch, device_.loader().load(*launch.kernel), at);
  }
  if (capturing_ == Capturing::kNothing) {
    completed_.launched();
  } else {
    completed_.captured();
  }
}

void CudaLaunchQueue::launch_call(const Launch& launch, StreamWindow& at) {
  require(launch.call != nullptr, "launch", "a kernel or a call",
          "neither in `" + launch.name + "`");
  at.join(launch.stream);
  launch.call(at.stream(launch.stream));
  at.touch(launch.stream);
  at.add(launch.node, {.stream = launch.stream, .num_blocks = launch.num_blocks});
  at.touch(launch.stream);
  at.join(launch.stream);
}

void CudaLaunchQueue::launch_kernel(const Launch& launch, const LoadedKernel& kernel,
                                    StreamWindow& at) {
  if (launch.num_blocks < 1 || launch.num_blocks > std::numeric_limits<std::int32_t>::max()) {
    throw Error("launch `" + launch.name + "`", "1 to 2147483647 blocks",
                std::to_string(launch.num_blocks));
  }
  KernelParameters parameters(launch, kernel);
  at.enter(launch.stream);
  const bool programmatic = wait_for_dependencies(launch, kernel, at);

  LaunchRecord record{.stream = launch.stream,
                      .num_blocks = launch.num_blocks,
                      .begun = launch.begun,
                      .begun_base = launch.begun_base};
  std::array<cudaLaunchAttribute, 2> attributes{};
  unsigned int num_attributes = 0;
  if (programmatic) {
    cudaLaunchAttribute& attribute = attributes[num_attributes++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  if (launch.completion_event == CompletionEvent::kLaunchCompletion && at.num_streams() > 1) {
    record.launch_completion = at.take_event();
    cudaLaunchAttribute& attribute = attributes[num_attributes++];
    attribute.id = cudaLaunchAttributeLaunchCompletionEvent;
    attribute.val.launchCompletionEvent.event = record.launch_completion;
    attribute.val.launchCompletionEvent.flags = 0;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned int>(launch.num_blocks));
  config.blockDim = dim3(static_cast<unsigned int>(launch.resources.threads));
  config.dynamicSmemBytes = dynamic_shared_bytes(kernel, launch.resources);
  config.stream = at.stream(launch.stream);
  config.attrs = attributes.data();
  config.numAttrs = num_attributes;
  const cudaError_t status = cudaLaunchKernelExC(&config, kernel.function, parameters.pointers());
  if (status != cudaSuccess) {
    throw_cuda_error(status, "launch `" + launch.name + "` (" + std::to_string(launch.num_blocks) +
                                 " blocks of " + std::to_string(launch.resources.threads) +
                                 " threads, " + std::to_string(config.dynamicSmemBytes) +
                                 " bytes of dynamic shared memory)");
  }
  at.add(launch.node, record);
  if (launch.end_event == EndEvent::kRecorded) at.mark_end(launch.stream);
}

bool CudaLaunchQueue::wait_for_dependencies(const Launch& launch, const LoadedKernel& kernel,
                                            StreamWindow& at) {
  const std::int32_t s = launch.stream;
  const LaunchRecord* programmatic = nullptr;
  for (const Dependency& dependency : launch.after) {
    const LaunchRecord& on = at.find(dependency.on);
    switch (dependency.release) {
      case Release::kCompleted:
        at.wait_completed(s, on);
        break;
      case Release::kProgrammatic:
        // Exists on one stream only; elsewhere, and where something came in between, the consumer
        // waits for completion, which is the same order and costs time alone.
        if (on.stream == s) {
          programmatic = &on;
        } else {
          at.wait_completed(s, on);
        }
        break;
      case Release::kLaunchCompleted:
        at.wait_launch_completion(s, on);
        break;
      case Release::kAllBegun:
      case Release::kFirstBegun:
        if (at.matters(s, on)) launch_wait_kernel(launch, dependency, on, at);
        break;
    }
  }
  return programmatic != nullptr && kernel.waits_for_grid_dependency &&
         at.directly_follows(s, *programmatic);
}

void CudaLaunchQueue::launch_wait_kernel(const Launch& launch, const Dependency& dependency,
                                         const LaunchRecord& on, StreamWindow& at) {
  if (on.begun == nullptr || on.begun_base == nullptr || launch.abort == nullptr ||
      launch.wait_kernel.report == nullptr) {
    throw Error("launch a wait kernel before `" + launch.name + "`",
                "a counter of begun blocks, an abort word and a report are needed", "none");
  }
  WaitBegunArgs args{};
  args.header.abort = launch.abort;
  args.header.report = launch.wait_kernel.report;
  args.header.deadline_ns = launch.wait_kernel.deadline_ns;
  args.header.node = launch.wait_kernel.node;
  args.header.rank = launch.wait_kernel.rank;
  args.begun = on.begun;
  args.begun_base = on.begun_base;
  args.wanted =
      dependency.release == Release::kFirstBegun ? 1 : static_cast<std::uint32_t>(on.num_blocks);
  args.producer = static_cast<std::uint32_t>(dependency.on);
  void* parameters[] = {&args};
  check_cuda(cudaLaunchKernel(wait_kernel_function(), dim3(1), dim3(kWaitKernelThreads), parameters,
                              0, at.stream(launch.stream)),
             "launch a wait kernel");
  at.touch(launch.stream);
}

void CudaLaunchQueue::barrier() {
  const CurrentDevice current(device_.index());
  StreamWindow& at = window();
  at.join(0);
  at.forget_old_launches();
}

void CudaLaunchQueue::begin_recording() {
  const CurrentDevice current(device_.index());
  window();
  require(capturing_ == Capturing::kNothing, "begin a recording", "no other capture may be open",
          "one that is");
  device_.loader().load_all(device_.kernels());
  completed_.capture_begins(*ordinary_);
  check_cuda(cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeThreadLocal),
             "begin a recording");
  captured_ = std::make_unique<StreamWindow>(streams_, EventReuse::kOff);
  capturing_ = Capturing::kRecording;
  captured_->join(0);  // the other streams enter the capture through stream 0
}

std::unique_ptr<Recording> CudaLaunchQueue::end_recording() {
  const CurrentDevice current(device_.index());
  require(capturing_ == Capturing::kRecording, "end a recording", "one must have been begun",
          "none");
  const ProfilerRange range("tileweave.end_recording");
  try {
    captured_->join(0);
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamEndCapture(streams_[0], &graph), "end a recording");
    captured_.reset();
    capturing_ = Capturing::kNothing;
    return std::make_unique<CudaRecording>(*this, graph, streams_[0]);
  } catch (...) {
    if (capturing_ == Capturing::kRecording) end_abandoned_recording();
    throw;
  }
}

void CudaLaunchQueue::replay(cudaGraphExec_t graph) {
  const CurrentDevice current(device_.index());
  StreamWindow& at = window();
  require(capturing_ != Capturing::kRecording, "replay a recording",
          "nothing may be being recorded on its queue", "a recording");
  at.join(0);
  check_cuda(cudaGraphLaunch(graph, at.stream(0)), "replay a recording");
  at.touch(0);
}

void CudaLaunchQueue::wait_for(NativeStream stream) {
  const CurrentDevice current(device_.index());
  const auto user = static_cast<cudaStream_t>(stream);
  StreamWindow* at = &window();
  if (capturing_ == Capturing::kNothing && is_capturing(user)) {
    completed_.capture_begins(*ordinary_);
    captured_ = std::make_unique<StreamWindow>(streams_, EventReuse::kOff);
    capturing_ = Capturing::kUserStream;
    at = captured_.get();
    at->wait_for(user);
    at->enter(0);  // so that the end of the capture can be seen on a stream of ours
    return;
  }
  at->wait_for(user);
}

void CudaLaunchQueue::block(NativeStream stream) {
  const CurrentDevice current(device_.index());
  const auto user = static_cast<cudaStream_t>(stream);
  StreamWindow& at = window();
  require(capturing_ != Capturing::kNothing || !is_capturing(user), "let a captured stream wait",
          "wait_for() must have named it in the capture, before what it waits for was launched",
          "no launch in this capture");
  at.block(user);
}

std::int64_t CudaLaunchQueue::num_completed() {
  const CurrentDevice current(device_.index());
  window();
  const RelaxedCapture relaxed;
  return completed_.completed(*ordinary_);
}

void CudaLaunchQueue::wait_until_completed(std::int64_t number) {
  const CurrentDevice current(device_.index());
  window();
  if (number >= completed_.num_launched()) {
    throw Error(
        "wait for a launch", "one that was launched",
        "number " + std::to_string(number) + " of " + std::to_string(completed_.num_launched()));
  }
  const RelaxedCapture relaxed;
  completed_.wait(number + 1, *ordinary_);
}

void CudaLaunchQueue::synchronize() {
  const CurrentDevice current(device_.index());
  window();
  require(capturing_ == Capturing::kNothing, "synchronize", "nothing may be being captured",
          "an open capture");
  const ProfilerRange range("tileweave.synchronize");
  cudaError_t first = cudaSuccess;
  for (const cudaStream_t stream : streams_) {
    const cudaError_t status = cudaStreamSynchronize(stream);
    if (first == cudaSuccess) first = status;
  }
  const cudaError_t last = cudaGetLastError();
  check_cuda(first != cudaSuccess ? first : last, "run kernels on the GPU");
  ordinary_->drained();
  completed_.all_completed();
}

}  // namespace tileweave

// CudaLaunchQueue: N streams of a GPU; recordings are CUDA graphs made by stream capture.
//
// Three situations, one code path: ordinary launches; launches between begin_recording and
// end_recording (captured from stream 0); and launches while the user captures a stream that
// `wait_for` named, until that capture ends (then `block` must name a stream of it, as CUDA asks).
// During a capture events are fresh and the GPU is asked only about work from before it. Launches
// in a capture count as completed with that: memory they use must live as long as the graph.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tileweave/runtime/cuda/completion_tracker.cuh"
#include "tileweave/runtime/cuda/cuda_device.cuh"
#include "tileweave/runtime/cuda/stream_window.cuh"
#include "tileweave/runtime/launch_queue.h"

namespace tileweave {

class CudaLaunchQueue final : public LaunchQueue {
 public:
  CudaLaunchQueue(CudaDevice& device, std::int32_t num_streams);
  ~CudaLaunchQueue() override;

  void launch(const Launch& launch) override;
  void barrier() override;
  void begin_recording() override;
  std::unique_ptr<Recording> end_recording() override;
  void wait_for(NativeStream stream) override;
  void block(NativeStream stream) override;
  std::int64_t num_completed() override;
  void wait_until_completed(std::int64_t number) override;
  void synchronize() override;

  /// Enqueues a replay between what was launched before and what is launched later.
  void replay(cudaGraphExec_t graph);

 private:
  enum class Capturing { kNothing, kRecording, kUserStream };

  /// The window that launches go to now; closes a user's capture that has ended.
  StreamWindow& window();
  void end_abandoned_recording() noexcept;
  /// Puts the event waits and wait kernels of `launch` on its stream; true when it may be launched
  /// programmatically.
  bool wait_for_dependencies(const Launch& launch, const LoadedKernel& kernel, StreamWindow& at);
  void launch_wait_kernel(const Launch& launch, const Dependency& dependency,
                          const LaunchRecord& on, StreamWindow& at);
  void launch_kernel(const Launch& launch, const LoadedKernel& kernel, StreamWindow& at);
  void launch_call(const Launch& launch, StreamWindow& at);

  CudaDevice& device_;
  std::vector<cudaStream_t> streams_;
  std::unique_ptr<StreamWindow> ordinary_;
  std::unique_ptr<StreamWindow> captured_;
  Capturing capturing_ = Capturing::kNothing;
  CompletionTracker completed_;
};

}  // namespace tileweave

// CudaRecording: a captured graph, instantiated and uploaded, that its queue replays.
#pragma once

#include <cuda_runtime.h>

#include "tileweave/runtime/launch_queue.h"

namespace tileweave {

class CudaLaunchQueue;

class CudaRecording final : public Recording {
 public:
  /// Takes the graph over. The queue must outlive the recording.
  CudaRecording(CudaLaunchQueue& queue, cudaGraph_t graph, cudaStream_t upload_on);
  ~CudaRecording() override;
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;

  void replay() override;

 private:
  CudaLaunchQueue& queue_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace tileweave

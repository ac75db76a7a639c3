// RelaxedCapture: for as long as it lives, this thread may do what CUDA refuses while one of its
// streams is being captured: ask about events, allocate, copy on a stream of its own.
//
// Sound where the call does not take part in the capture: it asks about, or acts on, what exists
// before any replay. Memory and copies made so are there when the first replay runs.
#pragma once

#include <cuda_runtime.h>

#include "tileweave/runtime/cuda/cuda_status.cuh"

namespace tileweave {

class RelaxedCapture {
 public:
  RelaxedCapture() {
    check_cuda(cudaThreadExchangeStreamCaptureMode(&mode_), "change the capture mode");
  }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace tileweave

#include "tileweave/runtime/cuda/cuda_recording.cuh"

#include "tileweave/runtime/cuda/cuda_launch_queue.cuh"
#include "tileweave/runtime/cuda/cuda_status.cuh"
#include "tileweave/runtime/cuda/profiler_range.cuh"

namespace tileweave {

CudaRecording::CudaRecording(CudaLaunchQueue& queue, cudaGraph_t graph, cudaStream_t upload_on)
    : queue_(queue) {
  cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(status, "make a recording executable");
  status = cudaGraphUpload(executable_, upload_on);
  // Nothing is allocated at the first replay any more, when something may already spin.
  if (status == cudaSuccess) status = cudaStreamSynchronize(upload_on);
  if (status != cudaSuccess) {
    cudaGraphExecDestroy(executable_);
    throw_cuda_error(status, "upload a recording");
  }
}

CudaRecording::~CudaRecording() {
  // CUDA keeps an executable graph alive until its running replay has ended.
  cudaGraphExecDestroy(executable_);
}

void CudaRecording::replay() {
  const ProfilerRange range("tileweave.replay");
  queue_.replay(executable_);
}

}  // namespace tileweave

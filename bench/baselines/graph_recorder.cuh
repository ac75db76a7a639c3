// GraphRecorder: our kernels and another library's calls, one behind the other, as one CUDA graph.
//
//   GraphRecorder recorder(device);
//   recorder.add(plan.tensors(), rms_norm(plan.tensors(), ...));   // operators as plans take them
//   recorder.add("product", [&](cudaStream_t stream) { ... });     // whatever can be captured
//   recorder.record(stream);
//   recorder.replay(stream);
//
// One stream, no semaphores: our kernels are launched programmatically behind whatever comes before
// them and wait for it as they do in a plan; calls are not, since what they launch does not wait.
// All tensors have addresses of their own. The device must outlive it. Throws Error.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/cuda/cuda_device.cuh"
#include "tileweave/runtime/device_memory.h"
#include "tileweave/runtime/launch.h"
#include "tileweave/runtime/sync_state.h"

namespace tileweave::bench {

class GraphRecorder {
 public:
  explicit GraphRecorder(Device& device);
  ~GraphRecorder();
  GraphRecorder(const GraphRecorder&) = delete;
  GraphRecorder& operator=(const GraphRecorder&) = delete;

  void add(const TensorTable& tensors, NodeSpec node);
  void add(const std::string& name, std::function<void(cudaStream_t)> call);

  /// Once, after everything was added. Also what lets counters of our kernels start anew.
  void record(cudaStream_t stream);
  void replay(cudaStream_t stream) const;
  std::size_t num_graph_nodes() const { return num_graph_nodes_; }

 private:
  void launch(const Launch& launch, cudaStream_t stream);

  CudaDevice& device_;
  SyncState state_;
  std::vector<Launch> launches_;
  std::vector<DeviceMemory> scratch_;
  std::vector<BaseUpdate> updates_;
  cudaGraphExec_t executable_ = nullptr;
  std::size_t num_graph_nodes_ = 0;
};

}  // namespace tileweave::bench

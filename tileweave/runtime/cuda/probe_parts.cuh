// The parts of the machine probe (probe.h), one file each.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "tileweave/runtime/cuda/cuda_device.cuh"
#include "tileweave/runtime/cuda/probe.h"

namespace tileweave {

/// Streams, of kProbedStreams, whose kernels were running at the same time.
std::int32_t count_independent_streams(CudaDevice& device);
inline constexpr int kProbedStreams = 48;

std::vector<LaunchOrderFinding> probe_launch_order(CudaDevice& device, std::int32_t launches);

MachineCheck probe_memory_operations(CudaDevice& device);
MachineCheck probe_memory_operations_in_graph(CudaDevice& device);
MachineCheck probe_programmatic_launch(CudaDevice& device);
MachineCheck probe_green_contexts(const CudaDevice& device);
MachineCheck probe_mapped_memory(CudaDevice& device);
MachineCheck probe_cooperative_launch(const CudaDevice& device);
MachineCheck probe_peer_access(const CudaDevice& device);

/// Runs one check; an Error becomes its finding.
MachineCheck try_check(const std::string& name, const std::function<MachineCheck()>& check);

/// Memory of a device for the length of a scope.
template <class T>
class ProbeBuffer {
 public:
  ProbeBuffer(Device& device, std::size_t count) : device_(device), count_(count) {
    data_ = static_cast<T*>(device_.allocate(count * sizeof(T)));
    device_.fill(data_, 0, count * sizeof(T));
  }
  ~ProbeBuffer() { device_.release(data_); }
  ProbeBuffer(const ProbeBuffer&) = delete;
  ProbeBuffer& operator=(const ProbeBuffer&) = delete;

  T* data() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    device_.download(values.data(), data_, count_ * sizeof(T));
    return values;
  }

 private:
  Device& device_;
  std::size_t count_;
  T* data_ = nullptr;
};

}  // namespace tileweave

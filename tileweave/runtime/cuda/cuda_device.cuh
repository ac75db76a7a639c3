// CudaDevice: one GPU, or a part of it, behind the Device interface.
//
// Blocking copies and fills run on a stream of their own, so they wait for nothing that runs
// elsewhere and are complete when they return (a plain copy from pageable memory may still be on
// its way then). Must outlive its queues and recordings.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tileweave/runtime/cuda/kernel_loader.cuh"
#include "tileweave/runtime/cuda/sm_partition.cuh"
#include "tileweave/runtime/device.h"

namespace tileweave {

/// Words between neighbouring semaphores: one 128-byte line each, so that pollers of one data tile
/// never delay arrivals on its neighbour (a sector is 8 words, an L2 line 32).
inline constexpr std::int32_t kCudaWordStride = 32;

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const CudaOptions& options);
  ~CudaDevice() override;

  const std::string& name() const override { return name_; }
  const DeviceLimits& limits() const override { return limits_; }
  std::string driver() const override { return driver_; }
  void* allocate(std::size_t bytes) override;
  void release(void* pointer) noexcept override;
  void* allocate_shared(std::size_t bytes) override;
  void release_shared(void* pointer) noexcept override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) const override;
  void fill(void* device, std::uint8_t byte, std::size_t bytes) override;
  std::int32_t default_word_stride() const override { return kCudaWordStride; }
  /// `shared_bytes` is a block's total: what the kernel has statically plus what its launches add.
  /// The compiled kernel's registers come back, and its static bytes where `declared` has fewer.
  KernelResources measured_resources(const KernelImpl& kernel,
                                     const KernelResources& declared) const override;
  std::int32_t occupancy(const KernelImpl& kernel, const KernelResources& resources) const override;
  std::unique_ptr<LaunchQueue> open_queue(std::int32_t num_streams) override;

  int index() const { return index_; }
  KernelLoader& loader() const { return *loader_; }
  /// A non-blocking stream on this device's SMs, of the one priority that all streams have.
  cudaStream_t create_stream() const;

 private:
  std::string name_ = "cuda";
  int index_ = 0;
  DeviceLimits limits_;
  std::string driver_;
  std::unique_ptr<SmPartition> partition_;
  std::unique_ptr<KernelLoader> loader_;
  cudaStream_t copies_ = nullptr;
};

/// Dynamic shared memory of a launch: the block's total less what the kernel has statically.
std::size_t dynamic_shared_bytes(const LoadedKernel& kernel, const KernelResources& resources);

}  // namespace tileweave

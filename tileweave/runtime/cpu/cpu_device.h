// CpuDevice: memory, kernels and queues of the emulated device.
//
// Every queue is an emulated device of its own (own SMs and, in throughput, own threads); they
// share memory and kernels. In `explore` and with checking views, fresh memory holds NaN bits, so
// that a read before the first write shows.
#pragma once

#include <memory>
#include <string>

#include "tileweave/runtime/cpu/described_device.h"
#include "tileweave/runtime/device.h"

namespace tileweave::cpu {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options);

  const std::string& name() const override { return name_; }
  const DeviceLimits& limits() const override { return limits_; }
  void* allocate(std::size_t bytes) override;
  void release(void* pointer) noexcept override;
  void* allocate_shared(std::size_t bytes) override { return allocate(bytes); }
  void release_shared(void* pointer) noexcept override { release(pointer); }
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) const override;
  void fill(void* device, std::uint8_t byte, std::size_t bytes) override;
  bool finds_deadlock() const override { return options_.way != CpuWay::kThroughput; }
  std::int32_t default_word_stride() const override { return 1; }
  KernelResources measured_resources(const KernelImpl& kernel,
                                     const KernelResources& declared) const override;
  std::int32_t occupancy(const KernelImpl& kernel, const KernelResources& resources) const override;
  std::unique_ptr<LaunchQueue> open_queue(std::int32_t num_streams) override;

 private:
  std::string name_ = "cpu";
  CpuOptions options_;
  DescribedDevice described_;
  DeviceLimits limits_;
};

}  // namespace tileweave::cpu

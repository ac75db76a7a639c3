// CountingDevice: another device with a count of what is allocated on it, to see what leaks.
#pragma once

#include <memory>
#include <utility>

#include "tileweave/runtime/device.h"

namespace tileweave {

class CountingDevice final : public Device {
 public:
  explicit CountingDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {
    for (const auto& [name, kernel] : inner_->kernels().all()) kernels().add(kernel);
  }
  /// Pieces of memory that have not been released.
  int live() const { return live_; }

  const std::string& name() const override { return inner_->name(); }
  const DeviceLimits& limits() const override { return inner_->limits(); }
  void* allocate(std::size_t bytes) override { return counted(inner_->allocate(bytes)); }
  void release(void* pointer) noexcept override {
    live_ -= pointer != nullptr ? 1 : 0;
    inner_->release(pointer);
  }
  void* allocate_shared(std::size_t bytes) override {
    return counted(inner_->allocate_shared(bytes));
  }
  void release_shared(void* pointer) noexcept override {
    live_ -= pointer != nullptr ? 1 : 0;
    inner_->release_shared(pointer);
  }
  void upload(void* device, const void* host, std::size_t bytes) override {
    inner_->upload(device, host, bytes);
  }
  void download(void* host, const void* device, std::size_t bytes) const override {
    inner_->download(host, device, bytes);
  }
  void fill(void* device, std::uint8_t byte, std::size_t bytes) override {
    inner_->fill(device, byte, bytes);
  }
  bool finds_deadlock() const override { return inner_->finds_deadlock(); }
  std::int32_t default_word_stride() const override { return inner_->default_word_stride(); }
  KernelResources measured_resources(const KernelImpl& kernel,
                                     const KernelResources& declared) const override {
    return inner_->measured_resources(kernel, declared);
  }
  std::int32_t occupancy(const KernelImpl& kernel,
                         const KernelResources& resources) const override {
    return inner_->occupancy(kernel, resources);
  }
  std::unique_ptr<LaunchQueue> open_queue(std::int32_t num_streams) override {
    return inner_->open_queue(num_streams);
  }

 private:
  void* counted(void* pointer) {
    live_ += pointer != nullptr ? 1 : 0;
    return pointer;
  }

  std::unique_ptr<Device> inner_;
  int live_ = 0;
};

}  // namespace tileweave

// DeviceMemory: bytes on a device, released with the object. Moves, never copies.
#pragma once

#include <cstddef>
#include <utility>

#include "tileweave/runtime/device.h"

namespace tileweave {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// Throws Error naming the size when the device is out of memory. The device must outlive it.
  DeviceMemory(Device& device, std::size_t bytes)
      : device_(&device), address_(device.allocate(bytes)) {}
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(other.device_), address_(std::exchange(other.address_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    return *this;
  }
  ~DeviceMemory() {
    if (address_ != nullptr) device_->release(address_);
  }

  std::byte* at(std::size_t offset = 0) const { return static_cast<std::byte*>(address_) + offset; }

 private:
  Device* device_ = nullptr;
  void* address_ = nullptr;
};

}  // namespace tileweave

// KernelParameters: a launch's argument and context bytes as the pointers that CUDA wants.
//
// A kernel takes its arguments first and then its SyncContext; either may be absent. Sizes are
// compared with what the compiled kernel declares, because a mismatch would be read past the end
// here and found nowhere else.
#pragma once

#include <string>

#include "tileweave/core/error.h"
#include "tileweave/runtime/cuda/kernel_loader.cuh"
#include "tileweave/runtime/launch.h"

namespace tileweave {

class KernelParameters {
 public:
  KernelParameters(const Launch& launch, const LoadedKernel& kernel) {
    add(launch.args);
    add(launch.context);
    bool fits = count_ == kernel.parameter_bytes.size();
    for (std::size_t i = 0; fits && i < count_; ++i) fits = bytes_[i] == kernel.parameter_bytes[i];
    if (!fits) {
      throw Error("launch `" + launch.name + "`",
                  "parameters of " +
                      text(kernel.parameter_bytes.data(), kernel.parameter_bytes.size()) + " bytes",
                  text(bytes_, count_) + " (arguments, then SyncContext)");
    }
  }

  void** pointers() { return pointers_; }

 private:
  void add(const std::vector<std::byte>& bytes) {
    if (bytes.empty()) return;
    // CUDA copies the bytes during the launch call and does not write to them.
    pointers_[count_] = const_cast<std::byte*>(bytes.data());
    bytes_[count_++] = bytes.size();
  }
  static std::string text(const std::size_t* sizes, std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) {
      all += (i == 0 ? "" : " + ") + std::to_string(sizes[i]);
    }
    return count == 0 ? "no" : all;
  }

  void* pointers_[2] = {};
  std::size_t bytes_[2] = {};
  std::size_t count_ = 0;
};

}  // namespace tileweave

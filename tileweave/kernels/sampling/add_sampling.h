// What a device needs to run plans with `argmax` and `sample`.
#pragma once

#include "tileweave/runtime/device.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

void add_sampling_cpu(KernelLibrary& kernels);
/// In builds without CUDA: throws Error saying so.
void add_sampling_cuda(KernelLibrary& kernels);

inline void add_sampling(Device& device) {
  device.name() == "cuda" ? add_sampling_cuda(device.kernels())
                          : add_sampling_cpu(device.kernels());
}

}  // namespace tileweave

// What a device needs to run plans with `argmax` and `sample`.
#pragma once

#include "tileweave/runtime/device.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

void add_sampling_cpu(KernelLibrary& kernels);
/// Throws Error on a device that has no implementation.
void add_sampling(Device& device);

}  // namespace tileweave

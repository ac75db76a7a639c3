// The base update (runtime/base_update.h) as a kernel of this device.
#pragma once

#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

void add_base_update_cuda(KernelLibrary& kernels);

}  // namespace tileweave

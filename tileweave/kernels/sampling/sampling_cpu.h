// The CPU forms of this folder's operators, for add_sampling_cpu.
#pragma once

#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

void add_argmax_cpu(KernelLibrary& kernels);
void add_sample_cpu(KernelLibrary& kernels);

}  // namespace tileweave

#include "tileweave/kernels/sampling/add_sampling.h"

#include "tileweave/kernels/sampling/sampling_cpu.h"

namespace tileweave {

void add_sampling_cpu(KernelLibrary& kernels) {
  add_argmax_cpu(kernels);
  add_sample_cpu(kernels);
}

}  // namespace tileweave

#include "tileweave/kernels/sampling/add_sampling.h"

#include "tileweave/core/error.h"
#include "tileweave/kernels/sampling/sampling_cpu.h"

namespace tileweave {

void add_sampling_cpu(KernelLibrary& kernels) {
  add_argmax_cpu(kernels);
  add_sample_cpu(kernels);
}

void add_sampling(Device& device) {
  if (device.name() != "cpu") {
    throw Error("add sampling to device `" + device.name() + "`",
                "the sampling operator has no CUDA implementation yet");
  }
  add_sampling_cpu(device.kernels());
}

}  // namespace tileweave

#include "tileweave/core/error.h"
#include "tileweave/kernels/sampling/add_sampling.h"

namespace tileweave {

void add_sampling_cuda(KernelLibrary& /*kernels*/) {
  throw Error("add the CUDA sampling operators", "a build with CUDA", "a build without it");
}

}  // namespace tileweave

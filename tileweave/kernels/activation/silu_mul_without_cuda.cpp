#include "tileweave/core/error.h"
#include "tileweave/kernels/activation/silu_mul.h"

namespace tileweave {

void add_activation_cuda(KernelLibrary& /*kernels*/) {
  throw Error("add the CUDA SiLU-mul", "a build with CUDA", "a build without it");
}

}  // namespace tileweave

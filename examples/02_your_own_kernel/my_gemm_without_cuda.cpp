#include "examples/02_your_own_kernel/my_gemm.h"
#include "tileweave/core/error.h"

namespace examples {

void add_my_gemm_cuda(tileweave::KernelLibrary& /*kernels*/) {
  throw tileweave::Error("add my_gemm", "a build with CUDA", "a build without it");
}

}  // namespace examples

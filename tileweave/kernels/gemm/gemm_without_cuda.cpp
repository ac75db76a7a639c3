#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/gemm.h"

namespace tileweave {

void add_gemm_cuda(KernelLibrary& /*kernels*/) {
  throw Error("add the CUDA GEMM", "a build with CUDA", "a build without it");
}

}  // namespace tileweave

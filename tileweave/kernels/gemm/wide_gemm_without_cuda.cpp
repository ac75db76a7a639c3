#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/wide_gemm.h"

namespace tileweave {

void add_wide_gemm_cuda(KernelLibrary& /*kernels*/) {
  throw Error("add the CUDA wide GEMM", "a build with CUDA", "a build without it");
}

}  // namespace tileweave

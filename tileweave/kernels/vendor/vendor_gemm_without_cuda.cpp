#include "tileweave/core/error.h"
#include "tileweave/kernels/vendor/vendor_gemm.h"

namespace tileweave {

void add_vendor_gemm_cuda(KernelLibrary& /*kernels*/) {
  throw Error("add the vendor GEMM", "a build with CUDA and cublasLt.h",
              "a build without one of them");
}

}  // namespace tileweave

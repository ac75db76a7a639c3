#include "tileweave/core/error.h"
#include "tileweave/kernels/vendor/vendor_gemm.h"

namespace tileweave {

void add_vendor_gemm_cuda(KernelLibrary& /*kernels*/) {
  throw Error("load cuBLASLt", "a build with CUDA and cublasLt.h", "a build without one of them");
}

std::string vendor_gemm_library() {
  throw Error("load cuBLASLt", "a build with CUDA and cublasLt.h", "a build without one of them");
}

}  // namespace tileweave

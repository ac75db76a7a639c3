#include "tileweave/core/error.h"
#include "tileweave/kernels/norm/rms_norm.h"

namespace tileweave {

void add_norm_cuda(KernelLibrary& /*kernels*/) {
  throw Error("add the CUDA RMSNorm", "a build with CUDA", "a build without it");
}

}  // namespace tileweave

#include "tileweave/core/error.h"
#include "tileweave/kernels/attention/paged_attention.h"

namespace tileweave {

void add_attention_cuda(KernelLibrary& /*kernels*/) {
  throw Error("add the CUDA attention kernels", "a build with CUDA", "a build without it");
}

}  // namespace tileweave

#include "tileweave/core/error.h"
#include "tileweave/kernels/rope/rope_kv.h"

namespace tileweave {

void add_rope_cuda(KernelLibrary& /*kernels*/) {
  throw Error("add the CUDA rope operator", "a build with CUDA", "a build without it");
}

}  // namespace tileweave

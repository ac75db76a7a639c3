#include "tileweave/core/error.h"
#include "tileweave/kernels/embedding/embedding.h"

namespace tileweave {

void add_embedding_cuda(KernelLibrary& /*kernels*/) {
  throw Error("add the CUDA embedding", "a build with CUDA", "a build without it");
}

}  // namespace tileweave

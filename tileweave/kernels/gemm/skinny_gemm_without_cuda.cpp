#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/packed_weights.h"
#include "tileweave/kernels/gemm/skinny_gemm.h"

namespace tileweave {

void add_skinny_gemm_cuda(KernelLibrary& /*kernels*/) {
  throw Error("add the CUDA skinny GEMM", "a build with CUDA", "a build without it");
}

void pack_weights_on(Device& /*device*/, const BFloat16* w, const PackedLayout& layout,
                     BFloat16* to) {
  pack_weights(w, layout, to);
}

}  // namespace tileweave

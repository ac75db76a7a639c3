#include "tileweave/core/error.h"
#include "tileweave/kernels/sampling/advance.h"

namespace tileweave {

std::function<void(NativeStream)> make_advance_cuda(Device& /*device*/,
                                                    const AdvanceArgs& /*args*/) {
  throw Error("make an advance on a GPU", "a build with CUDA", "a build without it");
}

}  // namespace tileweave

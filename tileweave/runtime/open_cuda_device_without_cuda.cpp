// The CUDA device of a build without CUDA: one sentence.
#include "tileweave/core/error.h"
#include "tileweave/runtime/device.h"

namespace tileweave {

std::unique_ptr<Device> open_cuda_device(const CudaOptions& /*options*/) {
  throw Error("open a CUDA device", "this build has no CUDA; configure it with TILEWEAVE_CUDA=ON");
}

bool cuda_usable() noexcept {
  return false;
}

}  // namespace tileweave

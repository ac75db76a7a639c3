#include "tileweave/runtime/cuda/wait_kernel.cuh"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/wait.h"

namespace tileweave {
namespace {

__global__ void __launch_bounds__(kWaitKernelThreads) wait_begun(WaitBegunArgs args) {
  if (threadIdx.x != 0) return;
  AtomicsCudaWarp atomics;
  const WaitSite site{.kind = WaitKind::kBegun,
                      .tile = args.producer,
                      .base = *args.begun_base,
                      .target = args.wanted};
  // An aborted wait has nothing to add: the kernel after it looks at the abort word itself.
  (void)wait_word(atomics, args.begun, site, args.header);
}

}  // namespace

const void* wait_kernel_function() {
  return reinterpret_cast<const void*>(&wait_begun);
}

}  // namespace tileweave

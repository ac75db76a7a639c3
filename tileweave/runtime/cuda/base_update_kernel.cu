#include "tileweave/runtime/base_update.h"
#include "tileweave/runtime/cuda/base_update_kernel.cuh"

namespace tileweave {
namespace {

__global__ void __launch_bounds__(kBaseUpdateThreads) base_update(BaseUpdateArgs args) {
  apply_base_updates(args, blockIdx.x, gridDim.x, static_cast<int>(threadIdx.x),
                     static_cast<int>(blockDim.x));
}

}  // namespace

void add_base_update_cuda(KernelLibrary& kernels) {
  kernels.add({.name = kBaseUpdateKernel,
               .num_sync_slots = 0,
               .cuda_function = reinterpret_cast<const void*>(&base_update)});
}

}  // namespace tileweave

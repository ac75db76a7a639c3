#include "tileweave/kernels/sampling/add_sampling.h"
#include "tileweave/kernels/sampling/argmax_cuda.cuh"
#include "tileweave/kernels/sampling/sample_cuda.cuh"

namespace tileweave {

void add_sampling_cuda(KernelLibrary& kernels) {
  kernels.add({.name = kArgmaxKernel,
               .num_sync_slots = ArgmaxOperands::kSlots,
               .cuda_function = reinterpret_cast<const void*>(argmax_cuda)});
  kernels.add({.name = kSampleKernel,
               .num_sync_slots = SampleOperands::kSlots,
               .cuda_function = reinterpret_cast<const void*>(sample_cuda)});
}

}  // namespace tileweave

#include "tileweave/kernels/gemm/wide_gemm_sm90.cuh"

#include "tileweave/kernels/gemm/wide_gemm.h"

namespace tileweave {

void add_wide_gemm_cuda(KernelLibrary& kernels) {
  int device = 0;
  int major = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  // A device loads every kernel of its library, and other GPUs have no code for this one.
  if (major != 9) return;
  kernels.add({.name = kWideGemmKernel,
               .num_sync_slots = WideGemmOperands::kSlots,
               .cuda_function = reinterpret_cast<const void*>(wide_gemm_sm90)});
}

}  // namespace tileweave

#include "tileweave/kernels/gemm/gemm_cuda.cuh"

#include "tileweave/kernels/gemm/gemm.h"

namespace tileweave {
namespace {

template <class T, class C>
void add(KernelLibrary& kernels) {
  kernels.add({.name = gemm_kernel_name(kDTypeOf<T>, kDTypeOf<C>),
               .num_sync_slots = GemmOperands::kCount,
               .cuda_function = reinterpret_cast<const void*>(gemm_cuda<T, C>)});
}

}  // namespace

void add_gemm_cuda(KernelLibrary& kernels) {
  add<float, float>(kernels);
  add<float, BFloat16>(kernels);
  add<BFloat16, float>(kernels);
  add<BFloat16, BFloat16>(kernels);
}

}  // namespace tileweave

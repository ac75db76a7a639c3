#include "tileweave/kernels/activation/silu_mul_cuda.cuh"

#include "tileweave/kernels/activation/silu_mul.h"

namespace tileweave {
namespace {

template <class Y>
void add(KernelLibrary& kernels) {
  kernels.add({.name = silu_mul_kernel_name(kDTypeOf<Y>),
               .num_sync_slots = SiluMulOperands::kSlots,
               .cuda_function = reinterpret_cast<const void*>(silu_mul_cuda<Y>)});
}

}  // namespace

void add_activation_cuda(KernelLibrary& kernels) {
  add<float>(kernels);
  add<BFloat16>(kernels);
}

}  // namespace tileweave

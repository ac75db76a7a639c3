#include "tileweave/kernels/norm/rms_norm_residual_cuda.cuh"

#include "tileweave/kernels/norm/rms_norm_residual.h"

namespace tileweave {
namespace {

template <class W, class Y>
void add(KernelLibrary& kernels) {
  kernels.add({.name = rms_norm_residual_kernel_name(kDTypeOf<W>, kDTypeOf<Y>),
               .num_sync_slots = RmsNormResidualOperands::kSlots,
               .cuda_function = reinterpret_cast<const void*>(rms_norm_residual_cuda<W, Y>)});
}

}  // namespace

void add_rms_norm_residual_cuda(KernelLibrary& kernels) {
  add<float, float>(kernels);
  add<float, BFloat16>(kernels);
  add<BFloat16, float>(kernels);
  add<BFloat16, BFloat16>(kernels);
}

}  // namespace tileweave

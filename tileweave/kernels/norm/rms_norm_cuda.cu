#include "tileweave/kernels/norm/rms_norm_cuda.cuh"

#include "tileweave/kernels/norm/qk_norm.h"
#include "tileweave/kernels/norm/rms_norm.h"
#include "tileweave/kernels/norm/rms_norm_residual.h"

namespace tileweave {
namespace {

template <class X, class W, class Y>
void add(KernelLibrary& kernels) {
  kernels.add({.name = rms_norm_kernel_name(kDTypeOf<X>, kDTypeOf<W>, kDTypeOf<Y>),
               .num_sync_slots = RmsNormOperands::kSlots,
               .cuda_function = reinterpret_cast<const void*>(rms_norm_cuda<X, W, Y>)});
}

template <class X, class W>
void add_results(KernelLibrary& kernels) {
  add<X, W, float>(kernels);
  add<X, W, BFloat16>(kernels);
}

}  // namespace

void add_norm_cuda(KernelLibrary& kernels) {
  add_results<float, float>(kernels);
  add_results<float, BFloat16>(kernels);
  add_results<BFloat16, float>(kernels);
  add_results<BFloat16, BFloat16>(kernels);
  add_rms_norm_residual_cuda(kernels);
  add_qk_norm_cuda(kernels);
}

}  // namespace tileweave

#include "tileweave/kernels/norm/qk_norm_cuda.cuh"

#include "tileweave/kernels/norm/qk_norm.h"

namespace tileweave {
namespace {

template <class W>
void add(KernelLibrary& kernels) {
  kernels.add({.name = qk_norm_kernel_name(kDTypeOf<W>),
               .num_sync_slots = QkNormOperands::kSlots,
               .cuda_function = reinterpret_cast<const void*>(qk_norm_cuda<W>)});
}

}  // namespace

void add_qk_norm_cuda(KernelLibrary& kernels) {
  add<float>(kernels);
  add<BFloat16>(kernels);
}

}  // namespace tileweave

#include "tileweave/kernels/rope/rope_kv_cuda.cuh"

#include "tileweave/kernels/rope/rope_kv.h"

namespace tileweave {
namespace {

template <class W>
void add(KernelLibrary& kernels) {
  kernels.add({.name = rope_kv_kernel_name(kDTypeOf<W>, DType::kBF16),
               .num_sync_slots = RopeKvOperands::kSyncSlots,
               .cuda_function = reinterpret_cast<const void*>(rope_kv_cuda<W>)});
}

}  // namespace

void add_rope_cuda(KernelLibrary& kernels) {
  add<float>(kernels);
  add<BFloat16>(kernels);
}

}  // namespace tileweave

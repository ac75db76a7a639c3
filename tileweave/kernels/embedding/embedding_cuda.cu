#include "tileweave/kernels/embedding/embedding_cuda.cuh"

#include "tileweave/kernels/embedding/embedding.h"

namespace tileweave {
namespace {

template <class T, class Y>
void add(KernelLibrary& kernels) {
  kernels.add({.name = embedding_kernel_name(kDTypeOf<T>, kDTypeOf<Y>),
               .num_sync_slots = EmbeddingOperands::kSlots,
               .cuda_function = reinterpret_cast<const void*>(embedding_cuda<T, Y>)});
}

}  // namespace

void add_embedding_cuda(KernelLibrary& kernels) {
  add<float, float>(kernels);
  add<BFloat16, float>(kernels);
  add<BFloat16, BFloat16>(kernels);
  add<Float16, float>(kernels);
}

}  // namespace tileweave

#include "tileweave/kernels/gemm/gemm_cuda.cuh"

#include <type_traits>

#include "tileweave/kernels/gemm/gemm.h"

namespace tileweave {
namespace {

template <class T, class C>
void add(KernelLibrary& kernels) {
  kernels.add({.name = gemm_kernel_name(kDTypeOf<T>, kDTypeOf<T>, kDTypeOf<C>, GemmForm::kPlain),
               .num_sync_slots = num_slots(GemmForm::kPlain),
               .cuda_function = reinterpret_cast<const void*>(gemm_cuda<T, C>)});
}

}  // namespace

void add_gemm_cuda(KernelLibrary& kernels) {
  for_each_common_gemm_types([&]<class A, class B, class C>(GemmTypes<A, B, C>) {
    static_assert(std::is_same_v<A, B>);
    add<A, C>(kernels);
  });
}

}  // namespace tileweave

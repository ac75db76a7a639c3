#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/kernels/gemm/skinny_gemm_sm90.cuh"

namespace tileweave {
namespace {

template <int kTokens, bool kNorm, bool kSplit>
void add(KernelLibrary& kernels) {
  kernels.add(
      {.name = skinny_gemm_kernel_name(SkinnyKernel::kBulk, kTokens, kNorm, kSplit),
       .num_sync_slots = SkinnyGemmOperands::kSlots,
       .cuda_function = reinterpret_cast<const void*>(skinny_gemm_sm90<kTokens, kNorm, kSplit>)});
}

template <int kTokens>
void add_all(KernelLibrary& kernels) {
  add<kTokens, false, false>(kernels);
  add<kTokens, true, false>(kernels);
  add<kTokens, false, true>(kernels);
  add<kTokens, true, true>(kernels);
}

}  // namespace

void add_skinny_gemm_bulk(KernelLibrary& kernels) {
  add_all<1>(kernels);
  add_all<8>(kernels);
  add_all<16>(kernels);
  add_all<32>(kernels);
  add_all<64>(kernels);
}

}  // namespace tileweave

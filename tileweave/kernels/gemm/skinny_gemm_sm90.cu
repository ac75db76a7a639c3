#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/kernels/gemm/skinny_gemm_sm90.cuh"

namespace tileweave {
namespace {

template <int kColumnTiles, bool kNorm>
void add(KernelLibrary& kernels) {
  kernels.add(
      {.name = skinny_gemm_kernel_name(SkinnyKernel::kBulk, kColumnTiles, kNorm),
       .num_sync_slots = SkinnyGemmOperands::kSlots,
       .cuda_function = reinterpret_cast<const void*>(skinny_gemm_sm90<kColumnTiles, kNorm>)});
}

template <int kColumnTiles>
void add_both(KernelLibrary& kernels) {
  add<kColumnTiles, false>(kernels);
  add<kColumnTiles, true>(kernels);
}

}  // namespace

void add_skinny_gemm_bulk(KernelLibrary& kernels) {
  add_both<1>(kernels);
  add_both<2>(kernels);
  add_both<4>(kernels);
  add_both<8>(kernels);
}

}  // namespace tileweave

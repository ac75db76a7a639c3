#include "tileweave/core/error.h"
#include "tileweave/kernels/gemm/skinny_gemm.h"
#include "tileweave/kernels/gemm/skinny_gemm_sm90.cuh"

namespace tileweave {
namespace {

template <int kColumnTiles, bool kNorm, bool kSplit>
void add(KernelLibrary& kernels) {
  kernels.add({.name = skinny_gemm_kernel_name(SkinnyKernel::kBulk, kColumnTiles, kNorm, kSplit),
               .num_sync_slots = SkinnyGemmOperands::kSlots,
               .cuda_function =
                   reinterpret_cast<const void*>(skinny_gemm_sm90<kColumnTiles, kNorm, kSplit>)});
}

template <int kColumnTiles>
void add_all(KernelLibrary& kernels) {
  add<kColumnTiles, false, false>(kernels);
  add<kColumnTiles, true, false>(kernels);
  add<kColumnTiles, false, true>(kernels);
  add<kColumnTiles, true, true>(kernels);
}

}  // namespace

void add_skinny_gemm_bulk(KernelLibrary& kernels) {
  add_all<1>(kernels);
  add_all<2>(kernels);
  add_all<4>(kernels);
  add_all<8>(kernels);
}

}  // namespace tileweave

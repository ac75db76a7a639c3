// Tile mix on a GPU: the kernel of tile_mix_kernel.h over the GPU's atomics.
#include "tests/runtime/tile_mix_kernel.h"
#include "tileweave/sync/atomics_cuda.cuh"

namespace tileweave {
namespace {

template <int kNumOperands, class Maps = ContextMaps>
__global__ void tile_mix_cuda(const __grid_constant__ MixArgs args,
                              const __grid_constant__ SyncContext<kNumOperands> context) {
  TileMix<kNumOperands, AtomicsCuda, NoMixViews, Maps>(args, context, {}, {}).run_block();
}

template <int kNumOperands>
void add(KernelLibrary& kernels) {
  for (const int lanes : {1, 2}) {
    kernels.add({.name = mix_kernel_name(kNumOperands, lanes),
                 .num_sync_slots = kNumOperands,
                 .cuda_function = reinterpret_cast<const void*>(tile_mix_cuda<kNumOperands>)});
  }
}

}  // namespace

void add_tile_mix_cuda(KernelLibrary& kernels) {
  add<2>(kernels);
  add<3>(kernels);
  add<4>(kernels);
  add<5>(kernels);
  add<6>(kernels);
  const auto rows = tile_mix_cuda<2, FunctorMaps<MixRowMaps>>;
  kernels.add({.name = kMixRowsKernel,
               .num_sync_slots = 2,
               .cuda_function = reinterpret_cast<const void*>(rows)});
}

}  // namespace tileweave

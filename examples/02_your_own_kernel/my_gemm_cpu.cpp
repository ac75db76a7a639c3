#include <algorithm>

#include "examples/02_your_own_kernel/my_gemm.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace examples {

using namespace tileweave;

namespace {

void my_gemm_block(const MyGemm& g, CpuLane& lane, const SyncContext<2>& context) {  // +
  SyncCta<AtomicsCpu, 2> sync(context, AtomicsCpu(lane));                            // +
  if (!sync.begin_cta()) return;                                                     // +
  const std::int64_t block = sync.remap(lane.block_index());                         // +
  const std::int64_t tile_m = block / g.tiles_n();
  const std::int64_t tile_n = block % g.tiles_n();
  if (!sync.wait_input(0, {tile_m})) return;  // +
  for (std::int64_t i = tile_m * MyGemm::kTile; i < std::min(g.m, (tile_m + 1) * MyGemm::kTile);
       ++i) {
    for (std::int64_t j = tile_n * MyGemm::kTile; j < std::min(g.n, (tile_n + 1) * MyGemm::kTile);
         ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < g.k; ++k) sum += g.a[i * g.k + k] * g.b[k * g.n + j];
      g.c[i * g.n + j] = sum;
    }
  }
  sync.signal_output(1, {tile_m, tile_n});  // +
}

}  // namespace

void add_my_gemm_cpu(KernelLibrary& kernels) {
  kernels.add({.name = "my_gemm",
               .num_sync_slots = 2,
               .cpu = [](CpuLane& lane, const std::byte* args, const std::byte* context) {
                 my_gemm_block(*reinterpret_cast<const MyGemm*>(args), lane,
                               *reinterpret_cast<const SyncContext<2>*>(context));
               }});
}

}  // namespace examples

#include <algorithm>

#include "examples/03_raw_interface/listing3.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace examples {

using namespace tileweave;

namespace {

template <class Maps>
void row_matmul(const RowMatmul& g, CpuLane& lane, const SyncContext<1>& context) {
  SyncCta<AtomicsCpu, 1, Maps> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  const std::int64_t tile = sync.remap(lane.block_index());
  if (!sync.wait_input(0, {tile})) return;
  for (std::int64_t i = tile * g.tile_m; i < std::min(g.m, (tile + 1) * g.tile_m); ++i) {
    for (std::int64_t j = 0; j < g.n; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < g.k; ++k) sum += g.a[i * g.k + k] * g.b[k * g.n + j];
      g.c[i * g.n + j] = sum;
    }
  }
}

template <class Maps>
void add(KernelLibrary& kernels, const char* name) {
  kernels.add({.name = name,
               .num_sync_slots = 1,
               .cpu = [](CpuLane& lane, const std::byte* args, const std::byte* context) {
                 row_matmul<Maps>(*reinterpret_cast<const RowMatmul*>(args), lane,
                                  *reinterpret_cast<const SyncContext<1>*>(context));
               }});
}

}  // namespace

void add_row_matmul_cpu(KernelLibrary& kernels) {
  add<ContextMaps>(kernels, "row_matmul.derived");
  add<FunctorMaps<RowMaps>>(kernels, "row_matmul.raw");
}

}  // namespace examples

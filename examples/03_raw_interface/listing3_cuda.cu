#include "examples/03_raw_interface/listing3.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace examples {

using namespace tileweave;

namespace {

template <class Maps>
__global__ void row_matmul(RowMatmul g, const __grid_constant__ SyncContext<1> context) {
  SyncCta<AtomicsCuda, 1, Maps> sync(context);
  if (!sync.begin_cta()) return;
  const std::int64_t tile = sync.remap(blockIdx.x);
  if (!sync.wait_input(0, {tile})) return;
  const std::int64_t first = tile * g.tile_m;
  const std::int64_t rows = min64(g.tile_m, g.m - first);
  for (std::int64_t e = threadIdx.x; e < rows * g.n; e += blockDim.x) {
    const std::int64_t i = first + e / g.n;
    const std::int64_t j = e % g.n;
    float sum = 0;
    for (std::int64_t k = 0; k < g.k; ++k) sum += g.a[i * g.k + k] * g.b[k * g.n + j];
    g.c[i * g.n + j] = sum;
  }
}

template <class Maps>
void add(KernelLibrary& kernels, const char* name) {
  kernels.add({.name = name,
               .num_sync_slots = 1,
               .cuda_function = reinterpret_cast<const void*>(row_matmul<Maps>)});
}

}  // namespace

void add_row_matmul_cuda(KernelLibrary& kernels) {
  add<ContextMaps>(kernels, "row_matmul.derived");
  add<FunctorMaps<RowMaps>>(kernels, "row_matmul.raw");
}

}  // namespace examples

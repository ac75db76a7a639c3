#include "examples/02_your_own_kernel/my_gemm.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace examples {

using namespace tileweave;

namespace {

__global__ void my_gemm_kernel(MyGemm g, const __grid_constant__ SyncContext<2> context) {  // +
  SyncCta<AtomicsCuda, 2> sync(context);                                                    // +
  if (!sync.begin_cta()) return;                                                            // +
  constexpr int kTile = MyGemm::kTile;
  __shared__ float a[kTile][kTile];
  __shared__ float b[kTile][kTile];
  const std::int64_t block = sync.remap(blockIdx.x);  // +
  const std::int64_t tile_m = block / g.tiles_n();
  const std::int64_t tile_n = block % g.tiles_n();
  const int y = static_cast<int>(threadIdx.x) / kTile;
  const int x = static_cast<int>(threadIdx.x) % kTile;
  const std::int64_t i = tile_m * kTile + y;
  const std::int64_t j = tile_n * kTile + x;
  float sum = 0;
  if (!sync.wait_input(0, {tile_m})) return;  // +
  for (std::int64_t k = 0; k < g.k; k += kTile) {
    a[y][x] = i < g.m && k + x < g.k ? g.a[i * g.k + k + x] : 0;
    b[y][x] = k + y < g.k && j < g.n ? g.b[(k + y) * g.n + j] : 0;
    __syncthreads();
    for (int d = 0; d < kTile; ++d) sum += a[y][d] * b[d][x];
    __syncthreads();
  }
  if (i < g.m && j < g.n) g.c[i * g.n + j] = sum;
  sync.signal_output(1, {tile_m, tile_n});  // +
}

}  // namespace

void add_my_gemm_cuda(KernelLibrary& kernels) {
  kernels.add({.name = "my_gemm",
               .num_sync_slots = 2,
               .cuda_function = reinterpret_cast<const void*>(my_gemm_kernel)});
}

}  // namespace examples

#include "cli/bench_nodes.h"
#include "cli/bench_nodes_args.h"
#include "tileweave/sync/atomics_cuda.cuh"
#include "tileweave/sync/sync_cta.h"

namespace tileweave::cli {
namespace {

/// 16-byte loads, eight in flight per thread; `never` keeps the compiler from dropping them.
__global__ void __launch_bounds__(kReadThreads) read_all(const __grid_constant__ ReadArgs args) {
  const auto* const from = reinterpret_cast<const uint4*>(args.from);
  std::uint32_t seen = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 7 * step < args.vectors; i += 8 * step) {
    uint4 v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) v[u] = __ldcs(from + i + u * step);
#pragma unroll
    for (int u = 0; u < 8; ++u) seen ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
  }
  for (; i < args.vectors; i += step) seen ^= __ldcs(from + i).x;
  if (seen == 0x12345678U) *args.never = seen;
}

/// First of the four columns of a thread's load.
__device__ int column_of(int load) {
  return (load * kRowThreads + static_cast<int>(threadIdx.x)) * 4;
}

__global__ void __launch_bounds__(kRowThreads)
    next_row(const __grid_constant__ NextRowArgs args,
             const __grid_constant__ SyncContext<2> context) {
  SyncCta<AtomicsCuda, 2> sync(context);
  if (!sync.begin_cta()) return;
  sync.remap(0);
  float4 x[kRowLoads];
#pragma unroll
  for (int i = 0; i < kRowLoads; ++i) {
    if (column_of(i) < args.columns) {
      x[i] = *reinterpret_cast<const float4*>(args.base.get() + column_of(i));
    }
  }
  const Ready ready = sync.wait_input(0, {0, 0});
  if (!ready) return;
  const BFloat16* const attended = args.attended.get(ready);
  const float* const before = args.before.get(ready);
  float little[kRowLoads];
#pragma unroll
  for (int i = 0; i < kRowLoads; ++i) {
    if (column_of(i) >= args.columns) continue;
    little[i] = attended != nullptr ? to_float(attended[column_of(i) % args.attended_columns])
                                    : before[column_of(i)];
  }
#pragma unroll
  for (int i = 0; i < kRowLoads; ++i) {
    if (column_of(i) >= args.columns) continue;
    const float add = little[i] * 1e-3F;
    *reinterpret_cast<float4*>(args.to.get() + column_of(i)) = {x[i].x + add, x[i].y + add,
                                                                x[i].z + add, x[i].w + add};
  }
  sync.signal_output(1, {0, 0});
}

__device__ ushort4 rounded(const float4& x) {
  return {to_bfloat16(x.x).bits, to_bfloat16(x.y).bits, to_bfloat16(x.z).bits,
          to_bfloat16(x.w).bits};
}

__global__ void __launch_bounds__(kRowThreads)
    copy_query(const __grid_constant__ CopyQueryArgs args,
               const __grid_constant__ SyncContext<2> context) {
  SyncCta<AtomicsCuda, 2> sync(context);
  if (!sync.begin_cta()) return;
  const auto row = static_cast<std::int64_t>(sync.remap(blockIdx.x));
  const Ready ready = sync.wait_input(0, {row, 0});
  if (!ready) return;
  const float* const qkv = args.qkv.get(ready);
  const BFloat16* const q = args.q.get(ready);
  ushort4 x[kRowLoads];
#pragma unroll
  for (int i = 0; i < kRowLoads; ++i) {
    if (column_of(i) >= args.columns) continue;
    const std::int64_t at = row * args.from_columns + column_of(i);
    x[i] = qkv != nullptr ? rounded(*reinterpret_cast<const float4*>(qkv + at))
                          : *reinterpret_cast<const ushort4*>(q + at);
  }
#pragma unroll
  for (int i = 0; i < kRowLoads; ++i) {
    if (column_of(i) >= args.columns) continue;
    *reinterpret_cast<ushort4*>(args.to.get() + row * args.columns + column_of(i)) = x[i];
  }
  sync.signal_output(1, {row, 0});
}

template <class Function>
KernelImpl kernel(const char* name, std::int32_t sync_slots, Function* function) {
  return {.name = name,
          .num_sync_slots = sync_slots,
          .cuda_function = reinterpret_cast<const void*>(function)};
}

}  // namespace

void add_bench_kernels(Device& device) {
  device.kernels().add(kernel(kReadKernel, 0, &read_all));
  device.kernels().add(kernel(kNextRowKernel, 2, &next_row));
  device.kernels().add(kernel(kCopyQueryKernel, 2, &copy_query));
}

}  // namespace tileweave::cli

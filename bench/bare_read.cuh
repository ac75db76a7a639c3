// A kernel that only reads, as a node: what any other node that reads these bytes is held against.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/plan/plan.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave::bench {

namespace detail {

inline constexpr int kBareThreads = 512;

struct BareArgs {
  const uint4* from;
  std::int64_t vectors;
  std::uint32_t* to;
};

/// 16-byte loads, eight in flight per thread; keeps the compiler from dropping them.
static __global__ void __launch_bounds__(kBareThreads)
    bare_read(const __grid_constant__ BareArgs args) {
  std::uint32_t seen = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 7 * step < args.vectors; i += 8 * step) {
    uint4 v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) v[u] = __ldcs(args.from + i + u * step);
#pragma unroll
    for (int u = 0; u < 8; ++u) seen ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
  }
  for (; i < args.vectors; i += step) seen ^= __ldcs(args.from + i).x;
  if (seen == 0x12345678U) *args.to = seen;
}

inline constexpr const char* kBareKernel = "bench.bare_read_loads";

}  // namespace detail

inline void add_bare_read(KernelLibrary& kernels) {
  kernels.add({.name = detail::kBareKernel,
               .cuda_function = reinterpret_cast<const void*>(&detail::bare_read)});
}

/// Reads all `bytes` of the constant `from`. `never`: four bytes that are as good as never written.
inline NodeSpec bare_read_node(const std::string& name, TensorId from, std::int64_t bytes,
                               std::int64_t blocks, void* never) {
  NodeSpec node;
  node.name = name;
  node.kernel = detail::kBareKernel;
  node.num_works = blocks;
  node.resources = {.threads = detail::kBareThreads, .registers_per_thread = 64};
  node.operands = {{.tensor = from, .when = ReadTime::kPrologue}};
  node.make_args = [bytes, never](const Addresses& at) {
    return to_bytes(detail::BareArgs{.from = static_cast<const uint4*>(at.operands[0]),
                                     .vectors = bytes / 16,
                                     .to = static_cast<std::uint32_t*>(never)});
  };
  return node;
}

}  // namespace tileweave::bench

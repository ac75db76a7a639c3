// GEMM: C (M, N) = A (M, K) · B, with B (K, N), or B (N, K) as model files store weights.
//
// A and B f32 or bf16 (both the same), C f32 or bf16, row-major; fp32 accumulation in ascending k,
// so the bits of C depend only on how K is split, never on tile sizes, order, mode or tilings.
// Kernel tiles and their coordinates (clipped at the edges):
//   A  slot 0  {m / coarse_m}: (coarse_m * tile_m, K); with wait_k {m / coarse_m, s}: (.., wait_k)
//   B  slot 1  {0, n}: (K, tile_n), with wait_k {s, n}: (wait_k, tile_n); axes swapped for (N, K).
//              A constant B is read before the first wait and never waited for.
//   C  slot 2  {m, n}: (tile_m, tile_n); split tiles are signalled once, by their last arriver
// tile_n may be as large as N: one wait and one signal then serve a whole row of C.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/kernels/gemm/gemm_schedule.h"
#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

enum class BLayout : std::uint8_t { kKxN, kNxK };

struct GemmOptions {
  std::string name = "gemm";
  std::int64_t tile_m = 64;
  std::int64_t tile_n = 64;
  std::int64_t tile_k = 32;  // K is split at multiples of this
  BLayout b_layout = BLayout::kKxN;
  GemmSplit split = GemmSplit::kTiles;
  std::int64_t splits = 1;  // kSplitK: works per C tile, at most ceil(K / tile_k)
  std::int64_t num_blocks =
      0;                      // kStreamK: number of works; else persistent blocks, 0: one per work
  std::int64_t coarse_m = 1;  // A is waited for coarse_m row tiles at a time
  std::int64_t wait_k = 0;  // 0: wait for a whole row tile of A; else K slices, multiple of tile_k
  std::int64_t prefetch_k = 0;  // elements of K of a constant B brought near before the first wait
  TileOrder order = TileOrder::identity();
  double cost_of_tile = 1;  // ticks of a whole C tile; other works in proportion to their FLOPs
  std::optional<Cost> cost = std::nullopt;  // instead of the above
  std::int64_t shared_padding = 0;  // bytes on top of what the kernel uses: fewer blocks per SM
  std::optional<EdgePolicy> edge = std::nullopt;
};

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit.
NodeSpec gemm(const TensorTable& tensors, const GemmOptions& options, TensorId a, TensorId b,
              TensorId c);

/// How `gemm` cuts (m, n, k) under `options`; throws Error for options that do not fit.
GemmSchedule gemm_schedule(const GemmOptions& options, std::int64_t m, std::int64_t n,
                           std::int64_t k);

void add_gemm_cpu(KernelLibrary& kernels);
/// In builds without CUDA: throws Error saying so.
void add_gemm_cuda(KernelLibrary& kernels);

inline void add_gemm(Device& device) {
  device.name() == "cuda" ? add_gemm_cuda(device.kernels()) : add_gemm_cpu(device.kernels());
}

}  // namespace tileweave

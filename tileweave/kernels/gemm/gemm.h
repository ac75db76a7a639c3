// GEMM: C (M, N) = A (M, K) · B, with B (K, N), or B (N, K) as model files store weights.
//
// Row-major; A x B -> C: f32 x f32 or bf16 x bf16 -> f32 or bf16; CPU also f32 x bf16 or f16 ->
// f32. Sums are fp32, in an order that only K and its split decide, never tile sizes, order, mode
// or other rows: ascending k; for (N, K) on the CPU 16 interleaved sums (k mod 16, counted from the
// start of a split part) folded by halves: + 8, + 4, + 2, + 1.
// Kernel tiles and their coordinates (clipped at the edges; the residual has slot 3, as C):
//   A  slot 0  {m / coarse_m}: (coarse_m * tile_m, K); with wait_k {m / coarse_m, s}: (.., wait_k)
//   B  slot 1  {0, n}: (K, tile_n), with wait_k {s, n}: (wait_k, tile_n); axes swapped for (N, K).
//              A constant B is read before the first wait and never waited for.
//   C  slot 2  {m, n}: (tile_m, tile_n); split tiles are signalled once, by their last arriver
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/kernels/gemm/gemm_epilogue.h"
#include "tileweave/kernels/gemm/gemm_schedule.h"
#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

enum class BLayout : std::uint8_t { kKxN, kNxK };

struct GemmOptions {
  std::string name = "gemm";
  /// One work computes tile_m x tile_n results over all of K (kTiles). tile_n may be as large as N:
  /// one wait and one signal then serve a whole row of C. With few rows a work costs what its
  /// weights take from memory: on the CPU some 64 KiB of them hide a block's launch.
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
  GemmEpilogue epilogue = {};
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
/// Kernels without an epilogue, operands of one type; loading a plan that asks for another names
/// it. In builds without CUDA: throws Error saying so.
void add_gemm_cuda(KernelLibrary& kernels);

inline void add_gemm(Device& device) {
  device.name() == "cuda" ? add_gemm_cuda(device.kernels()) : add_gemm_cpu(device.kernels());
}

}  // namespace tileweave

// Wide GEMM: y = x Wᵀ for many rows of x (prompts), from the packed weights that decoding reads.
//
// x (M, K) bf16, any M >= 1. W (N, K) packed (packed_weights.h), constant. y (M, N), or gated
// (M, N / 2) = silu(x Gateᵀ) * (x Upᵀ) from paired strips; f32 or bf16, plus bias and residual
// where given. N and K are any. sm_90a; the emulated device runs it too.
//
// Sums are fp32, in the order of skinny_gemm beyond 16 rows: K is cut at multiples of 1 024 into
// parts and these into slices of 128 columns; a slice's even fragments of 16 columns make one sum,
// its odd ones another, these two are added, then the slices of a part, then the parts, each in
// ascending order. So the bits of a row of y depend on its row of x and on W alone; they are
// skinny_gemm's beyond 16 rows: on an H200 wgmma rounds as mma.sync does (WideGemmCuda.* holds it).
// Kernel tiles of work {g, t, j}: eight strips g, kWideTokens rows t, share j of `split_k` of the
// parts of K
//   x         slot 0  {t, 0}: (kWideTokens, K)
//   residual  slot 1  {t, g}: as y
//   y         slot 2  {t, g}: (kWideTokens, columns of the strips); signalled by the last arriver
//   w, bias   constants, read before the first wait (no slot)
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/kernels/gemm/packed_weights.h"
#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

inline constexpr std::int64_t kWideTokens = 128;  // rows of x per work
inline constexpr std::int64_t kWideStrips = 8;    // strips of W per work

struct WideGemmOptions {
  std::string name = "wide_gemm";
  bool gated = false;        // W holds gate, then up, and is packed kPaired; else kRows
  std::int64_t split_k = 1;  // works per tile of y, at most one per 1 024 columns of K
  TileOrder order = TileOrder::identity();
  double cost_of_work = 1;  // ticks
  std::optional<Cost> cost = std::nullopt;
  std::optional<EdgePolicy> edge = std::nullopt;
};

struct WideGemmTensors {
  TensorId x = kNoTensor;
  TensorId w = kNoTensor;         // (N, K) bf16, packed
  TensorId y = kNoTensor;         // result
  TensorId residual = kNoTensor;  // f32, shape of y
  TensorId bias = kNoTensor;      // (N) f32 or bf16
};

/// The split of K with which the works of a product fill, but do not exceed, `num_sms` SMs. Pure.
std::int64_t wide_gemm_split(std::int64_t m, std::int64_t n, std::int64_t k, std::int32_t num_sms);

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit.
NodeSpec wide_gemm(const TensorTable& tensors, const WideGemmOptions& options,
                   const WideGemmTensors& operands);

void add_wide_gemm_cpu(KernelLibrary& kernels);
/// Adds nothing on a GPU older than sm_90. In builds without CUDA: throws Error saying so.
void add_wide_gemm_cuda(KernelLibrary& kernels);

inline void add_wide_gemm(Device& device) {
  device.name() == "cuda" ? add_wide_gemm_cuda(device.kernels())
                          : add_wide_gemm_cpu(device.kernels());
}

/// Whether the device has been given the kernel.
inline bool has_wide_gemm(const Device& device) {
  return device.kernels().all().contains("wide_gemm");
}

}  // namespace tileweave

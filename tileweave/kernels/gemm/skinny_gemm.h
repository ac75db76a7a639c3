// Skinny GEMM: y = x Wᵀ for few rows of x (decode), weights streamed once from memory.
//
// x (M, K) bf16, or f32 with a norm in front: bf16(x * norm_weight) is multiplied, and the products
// of a row with its 1 / rms(x), which is known last, before bias and all else. W (N, K) packed
// (packed_weights.h), constant, fetched before the first wait through a ring in shared memory.
// y (M, N), or gated (M, N / 2) = silu(x Gateᵀ) * (x Upᵀ) from paired strips; f32 or bf16, plus
// bias and residual where given. M is at most 64, N and K are any.
//
// Sums are fp32. K is cut at multiples of 1 024 into parts; inside a part eight warps take 128
// columns each and their sums are added in warp order. Parts make up spans of one to four (of one
// where M > 16), whose sums are added in ascending order. So the bits of a row depend on that
// row alone, up to 16 rows and beyond them: not on M, the cut into works, order or mode.
// Kernel tiles of work {g, j}: strips g, and share j of `split_k` of the spans of K:
//   x         slot 0  {0, s}: (M, wait_k), the slices of K of the work's parts; wait_k 0: (M, K)
//   residual  slot 1  {0, g}: as y
//   y         slot 2  {0, g}: (M, columns of the work's strips); signalled by the last arriver
//   w, norm_weight, bias  constants, read before the first wait (no slot)
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/kernels/gemm/packed_weights.h"
#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

inline constexpr std::int64_t kSkinnyMostRows = 64;

/// `kBulk`: bulk copies and mbarriers, sm_90 and later. `kPortable`: cp.async, sm_80 and later.
enum class SkinnyKernel : std::uint8_t { kBulk, kPortable };

struct SkinnyGemmOptions {
  std::string name = "skinny_gemm";
  bool gated = false;  // W holds gate, then up, and is packed kPaired; else kRows
  float eps = 1e-6F;   // of the norm in front
  SkinnyKernel kernel = SkinnyKernel::kBulk;
  std::int64_t strips_per_work = 1;  // even where gated
  std::int64_t split_k = 1;          // works per group of strips, at most one per span of K
  std::int64_t stages = 5;           // of the ring, 32 KiB each
  /// Copies in flight per block. A release at GPU scope waits for every bulk copy in flight on its
  /// SM: a few keep the memory busy, the whole ring would hold back the signals of the kernel
  /// before.
  std::int64_t window = 2;
  std::int64_t wait_k = 0;          // multiple of 512: start on slices of x as they appear
  std::int64_t shared_padding = 0;  // bytes on top of what the kernel uses: fewer blocks per SM
  std::int64_t shared_limit = 227 << 10;  // DeviceLimits::shared_bytes_per_block; an H200's
  TileOrder order = TileOrder::identity();
  double cost_of_work = 1;  // ticks
  std::optional<Cost> cost = std::nullopt;
  std::optional<EdgePolicy> edge = std::nullopt;
};

struct SkinnyGemmTensors {
  TensorId x = kNoTensor;
  TensorId w = kNoTensor;            // (N, K) bf16, packed
  TensorId y = kNoTensor;            // result
  TensorId norm_weight = kNoTensor;  // (K) f32 or bf16: x is f32 and normed here
  TensorId residual = kNoTensor;     // f32, shape of y
  TensorId bias = kNoTensor;         // (N) f32 or bf16
};

/// Options that give every SM of `num_sms` an equal share of the bytes: the fields
/// strips_per_work, split_k and stages, so that a block fits shared_limit where any cut does.
/// `blocks_per_sm`: how many such blocks are to fit one SM. Pure.
SkinnyGemmOptions skinny_gemm_cut(std::int64_t m, std::int64_t n, std::int64_t k,
                                  std::int32_t num_sms, const SkinnyGemmOptions& base,
                                  std::int32_t blocks_per_sm = 1, bool with_norm = false);

/// What may be chosen for speed in a cut; 0: as skinny_gemm_cut has it.
struct SkinnyGemmKnobs {
  std::int64_t blocks_per_sm = 0;  // how many blocks are to fit one SM
  std::int64_t strips_per_work = 0;
  std::int64_t split_k = 0;
  std::int64_t stages = 0;
  std::int64_t window = 0;
};

/// skinny_gemm_cut where the knobs say nothing else.
SkinnyGemmOptions skinny_gemm_cut(std::int64_t m, std::int64_t n, std::int64_t k,
                                  std::int32_t num_sms, const SkinnyGemmOptions& base,
                                  const SkinnyGemmKnobs& knobs, bool with_norm);

/// Bytes of shared memory of a block of a cut; `norm_bytes`: as below. Pure.
std::int64_t skinny_gemm_shared(std::int64_t m, std::int64_t n, std::int64_t k,
                                const SkinnyGemmOptions& cut, std::int64_t norm_bytes);

/// Bytes of shared memory of a block in the smallest cut of `m` rows of `k` columns; `norm_bytes`:
/// of the norm's weights, 0 without one. Pure.
std::int64_t skinny_gemm_least_shared(std::int64_t m, std::int64_t k, SkinnyKernel kernel,
                                      std::int64_t norm_bytes);

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit.
NodeSpec skinny_gemm(const TensorTable& tensors, const SkinnyGemmOptions& options,
                     const SkinnyGemmTensors& operands);

void add_skinny_gemm_cpu(KernelLibrary& kernels);
/// In builds without CUDA: throws Error saying so.
void add_skinny_gemm_cuda(KernelLibrary& kernels);

inline void add_skinny_gemm(Device& device) {
  device.name() == "cuda" ? add_skinny_gemm_cuda(device.kernels())
                          : add_skinny_gemm_cpu(device.kernels());
}

}  // namespace tileweave

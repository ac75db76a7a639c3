// A plain GEMM as somebody may have written it, one C tile per block, adapted to tile
// synchronisation by six lines (marked in my_gemm_cpu.cpp and my_gemm_cuda.cu).
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/target.h"
#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"

namespace examples {

/// C (m, n) = A (m, k) · B (k, n), fp32, row-major; block b computes C tile (b / tiles_n, b %
/// tiles_n).
struct MyGemm {
  static constexpr int kTile = 16;
  const float* a;
  const float* b;
  float* c;
  std::int64_t m, n, k;

  TW_HOST_DEVICE constexpr std::int64_t tiles_m() const { return (m + kTile - 1) / kTile; }
  TW_HOST_DEVICE constexpr std::int64_t tiles_n() const { return (n + kTile - 1) / kTile; }
};

/// What a user of my_gemm must know of it: which box of each operand a block touches.
tileweave::NodeSpec my_gemm(const tileweave::TensorTable& tensors, const std::string& name,
                            tileweave::TensorId a, tileweave::TensorId b, tileweave::TensorId c);

void add_my_gemm_cpu(tileweave::KernelLibrary& kernels);
void add_my_gemm_cuda(tileweave::KernelLibrary& kernels);

}  // namespace examples

// RMSNorm of a residual sum: s = x + delta, y = s / sqrt(mean(s^2) + eps) * weight, per row.
//
// x, delta, s (M, N) f32; y (M, N) f32, or bf16 on a GPU; weight (N) f32, bf16 or, on the CPU, f16;
// fp32 arithmetic. Rows are independent, as in rms_norm. Kernel tiles and their coordinates:
//   x       slot 0  {m}: (tile_m, N)
//   delta   slot 1  {m}: (tile_m, N)
//   weight  constant, read before the first wait (no slot)
//   sum     slot 2  {m}: (tile_m, N)
//   y       slot 3  {m}: (tile_m, N)
// sum and y may each share the buffer of x or of delta (not both the same one): a row is read
// before it is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

struct RmsNormResidualOptions {
  std::string name = "rms_norm_residual";
  float eps = 1e-5F;
  std::int64_t tile_m = 8;      // rows per work
  std::int64_t num_blocks = 0;  // persistent blocks; 0: one per work
  TileOrder order = TileOrder::identity();
  double cost_of_tile = 1;  // ticks of tile_m rows; a ragged last tile in proportion
  std::optional<Cost> cost = std::nullopt;  // instead of the above
  std::optional<EdgePolicy> edge = std::nullopt;
};

struct RmsNormResidualTensors {
  TensorId x = kNoTensor, delta = kNoTensor, weight = kNoTensor;
  TensorId sum = kNoTensor, y = kNoTensor;  // results
};

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit.
NodeSpec rms_norm_residual(const TensorTable& tensors, const RmsNormResidualOptions& options,
                           const RmsNormResidualTensors& operands);

/// Parts of add_norm_cpu and add_norm_cuda.
void add_rms_norm_residual_cpu(KernelLibrary& kernels);
void add_rms_norm_residual_cuda(KernelLibrary& kernels);

}  // namespace tileweave

// RMSNorm: y = x / sqrt(mean(x^2) + eps) * weight, per row of x (M, N), weight (N), y (M, N).
//
// x, weight and y each f32 or bf16, or weight f16 with x and y f32; fp32 arithmetic. Rows are
// independent: the bits of a row do not depend on the rows around it, on tile sizes, order or mode.
// Kernel tiles and their coordinates:
//   x       slot 0  {m}: (tile_m, N)
//   weight  constant, read before the first wait (no slot)
//   y       slot 1  {m}: (tile_m, N)
// y may share the buffer of x (same element type): an element is read before it is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

struct RmsNormOptions {
  std::string name = "rms_norm";
  float eps = 1e-5F;
  std::int64_t tile_m = 8;      // rows per work
  std::int64_t num_blocks = 0;  // persistent blocks; 0: one per work
  TileOrder order = TileOrder::identity();
  double cost_of_tile = 1;  // ticks of tile_m rows; a ragged last tile in proportion
  std::optional<Cost> cost = std::nullopt;  // instead of the above
  std::int64_t shared_padding = 0;  // bytes on top of what the kernel uses: fewer blocks per SM
  std::optional<EdgePolicy> edge = std::nullopt;
};

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit.
NodeSpec rms_norm(const TensorTable& tensors, const RmsNormOptions& options, TensorId x,
                  TensorId weight, TensorId y);

/// rms_norm, rms_norm_residual and qk_norm.
void add_norm_cpu(KernelLibrary& kernels);
/// The same, without f16 weights. In builds without CUDA: throws Error saying so.
void add_norm_cuda(KernelLibrary& kernels);

inline void add_norm(Device& device) {
  device.name() == "cuda" ? add_norm_cuda(device.kernels()) : add_norm_cpu(device.kernels());
}

}  // namespace tileweave

// SiLU-mul (SwiGLU): out = silu(gate) * up, with gate_up = [gate | up] along the columns.
//
// gate_up (T, 2 N) f32, out (T, N) f32, or bf16 on a GPU; fp32 arithmetic; every element depends on
// its gate and its up alone. Kernel tiles and their coordinates:
//   gate_up  slot 0  two boxes (tile_m, tile_n) per work, one of gate and one of up: a grid {m, n}
//                    and {m, tiles_n + n} where tile_n divides N, else a table of boxes
//   out      slot 1  {m, n}: (tile_m, tile_n)
// tile_n may be as large as N: row tiles only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"
#include "tileweave/runtime/kernel_library.h"

namespace tileweave {

struct SiluMulOptions {
  std::string name = "silu_mul";
  std::int64_t tile_m = 8;      // rows per work
  std::int64_t tile_n = 0;      // columns of out per work; 0: all of them
  std::int64_t num_blocks = 0;  // persistent blocks; 0: one per work
  TileOrder order = TileOrder::identity();
  double cost_of_tile = 1;                  // ticks of a whole tile; a ragged one in proportion
  std::optional<Cost> cost = std::nullopt;  // instead of the above
  std::optional<EdgePolicy> edge = std::nullopt;
};

/// The launch as a node of a plan or of an AsyncStream. Throws Error naming the operand for shapes,
/// types or options that do not fit.
NodeSpec silu_mul(const TensorTable& tensors, const SiluMulOptions& options, TensorId gate_up,
                  TensorId out);

void add_activation_cpu(KernelLibrary& kernels);
/// In builds without CUDA: throws Error saying so.
void add_activation_cuda(KernelLibrary& kernels);

inline void add_activation(Device& device) {
  device.name() == "cuda" ? add_activation_cuda(device.kernels())
                          : add_activation_cpu(device.kernels());
}

}  // namespace tileweave

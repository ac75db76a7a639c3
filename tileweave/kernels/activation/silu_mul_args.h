// SiluMulArgs: the argument struct of every SiLU-mul kernel, and how the input is cut.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/dtype.h"
#include "tileweave/plan/resources.h"
#include "tileweave/sync/access.h"
#include "tileweave/tile/tiling.h"

namespace tileweave {

inline constexpr KernelResources kSiluMulResources{.threads = 256, .registers_per_thread = 32};

/// Indices of the node's operands, and slots of the kernel's SyncContext.
struct SiluMulOperands {
  static constexpr int kGateUp = 0;
  static constexpr int kOut = 1;
  static constexpr int kSlotGateUp = 0;
  static constexpr int kSlotOut = 1;
  static constexpr int kSlots = 2;
};

/// How gate_up is cut, given the tiles of out.
struct SiluMulInput {
  /// Elements of gate_up that half `part` (0: gate, 1: up) of out's tile `tile` needs.
  TW_HOST_DEVICE static constexpr Box box(const Tiling& tiles, const Coord& tile, int part) {
    Box box = tiles.box(tile);
    box.begin[1] += part * tiles.shape[1];
    return box;
  }
  /// Whether these boxes are tiles of one grid over gate_up.
  TW_HOST_DEVICE static constexpr bool is_grid(const Tiling& tiles) {
    return tiles.shape[1] % tiles.tile[1] == 0;
  }
  /// Kernel tile of gate_up for that half, as a coordinate.
  TW_HOST_DEVICE static constexpr Coord tile(const Tiling& tiles, const Coord& tile, int part) {
    if (is_grid(tiles)) return {tile[0], tile[1] + part * tiles.num_tiles(1)};
    return {2 * tiles.linear(tile) + part};
  }
};

template <class Y>
struct SiluMulArgs {
  Produced<float> gate_up;
  Output<Y> out;
  Tiling tiles;  // of out: tile `work` is the box of a work
  std::int64_t num_blocks;
};

/// "silu_mul.bf16": element type of out.
std::string silu_mul_kernel_name(DType out);

}  // namespace tileweave

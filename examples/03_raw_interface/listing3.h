// A matmul kernel that takes the paper's raw interface: maps, extents and target are functions of
// tile coordinates compiled into the kernel, their numbers come with the launch.
#pragma once

#include <cstdint>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/device.h"
#include "tileweave/sync/tile_walk.h"

namespace examples {

/// Numbers given at launch (LaunchArgs), in this order.
struct RowNumbers {
  std::int64_t ktile_m;  // rows of this kernel's tiles
  std::int64_t dtile_m;  // rows of Y's data tiles
  std::int64_t target;   // signals per data tile
};

/// in_map, in_sema_extent and in_target of Listing 2, for the input in slot 0.
struct RowMaps {
  TW_HOST_DEVICE static tileweave::TileSpan map(int /*operand*/, const tileweave::Coord& ktile,
                                                const tileweave::LaunchArgs& args) {
    const std::int64_t ktile_m = args.v[0];
    const std::int64_t dtile_m = args.v[1];
    return {{ktile[0] * ktile_m / dtile_m, 0}, {tileweave::ceil_div(ktile_m, dtile_m), 1}};
  }
  TW_HOST_DEVICE static std::uint32_t target(int /*operand*/, const tileweave::Coord& /*dtile*/,
                                             const tileweave::LaunchArgs& args) {
    return static_cast<std::uint32_t>(args.v[2]);
  }
};

/// Z (m, n) = Y (m, k) · V (k, n); a block computes `tile_m` rows.
struct RowMatmul {
  const float* a;
  const float* b;
  float* c;
  std::int64_t m, n, k, tile_m;
};

/// "row_matmul.raw" with RowMaps compiled in, "row_matmul.derived" with maps from its context.
void add_row_matmul_cpu(tileweave::KernelLibrary& kernels);
void add_row_matmul_cuda(tileweave::KernelLibrary& kernels);

}  // namespace examples

// A kernel that stands for the operators around attention: copies a matrix tile by tile, to rows
// that `slots` names where it is given (-1: nowhere).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "tileweave/plan/node.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/runtime/kernel_library.h"
#include "tileweave/sync/access.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {

struct CopyArgs {
  Produced<float> from;
  Output<float> to;
  Stable<std::int32_t> slots;  // or null
  Tiling tiles;
};

inline void copy_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  const auto& args = *reinterpret_cast<const CopyArgs*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<2>*>(context_bytes);
  SyncCta<AtomicsCpu, 2> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  const Coord tile = args.tiles.coord(sync.remap(lane.block_index()));
  const Ready ready = sync.wait_input(0, tile);
  if (!ready) return;
  const std::int64_t cols = args.tiles.shape[1];
  const Box box = args.tiles.box(tile);
  const MatrixView<const float> from(args.from.get(ready), cols, 0, lane.checker());
  const MatrixView<float> to(args.to.get(), 0, 1, lane.checker());
  for (std::int64_t i = box.begin[0]; i < box.begin[0] + box.size[0]; ++i) {
    const std::int64_t row = args.slots.get() != nullptr ? args.slots.get()[i] : i;
    if (row < 0) continue;
    std::copy_n(from.row(i, box.begin[1], box.size[1]), box.size[1],
                to.row(i, box.begin[1], box.size[1]) + row * cols);
  }
  sync.signal_output(1, tile);
}

inline void add_copy_cpu(KernelLibrary& kernels) {
  kernels.add({.name = "copy", .num_sync_slots = 2, .cpu = copy_cpu});
}

inline NodeSpec copy_node(const TensorTable& tensors, const std::string& name, TensorId from,
                          TensorId to, const Coord& tile, TensorId slots = kNoTensor) {
  const Tiling tiles{tensors[from].spec.shape, tile};
  NodeSpec node{
      .name = name,
      .kernel = "copy",
      .num_works = tiles.count(),
      .operands = {{.tensor = from, .kernel_tiles = TileSet::plain(tiles), .sync_slot = 0},
                   {.tensor = to,
                    .access = Access::kWrite,
                    .kernel_tiles = TileSet::plain(tiles),
                    .sync_slot = 1}},
      .resources = {},
      .cost = {}};
  if (slots != kNoTensor) node.operands.push_back({.tensor = slots, .when = ReadTime::kPrologue});
  node.make_args = [=](const Addresses& at) {
    const auto* rows =
        slots == kNoTensor ? nullptr : static_cast<const std::int32_t*>(at.operands[2]);
    return to_bytes(CopyArgs{.from = {static_cast<const float*>(at.operands[0])},
                             .to = {static_cast<float*>(at.operands[1])},
                             .slots = {rows},
                             .tiles = tiles});
  };
  return node;
}

}  // namespace tileweave

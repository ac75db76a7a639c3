#include "tileweave/kernels/gemm/gemm.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tileweave/kernels/gemm/gemm_args.h"
#include "tileweave/kernels/gemm/gemm_check.h"

namespace tileweave {
namespace {

using TilesOfWork = std::function<std::vector<std::int64_t>(std::int64_t work)>;

/// Kernel tiles that a work reads of A or B: `index(tile, slice)` for every slice of K that it
/// covers of every C tile that it computes.
template <class Index>
TilesOfWork tiles_read(const GemmSchedule& s, Index index) {
  return [s, index](std::int64_t work) {
    std::vector<std::int64_t> tiles;
    for (std::int64_t t = s.first_tile(work); t <= s.last_tile(work); ++t) {
      const GemmSegment part = s.segment(work, t);
      for (std::int64_t i = s.slice_of(part.k_begin); i <= s.slice_of(part.k_end - 1); ++i) {
        tiles.push_back(index(t, i));
      }
    }
    std::sort(tiles.begin(), tiles.end());
    tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
    return tiles;
  };
}

/// The C tiles of a work.
TilesOfWork c_tiles(const GemmSchedule& s) {
  return [s](std::int64_t work) {
    std::vector<std::int64_t> tiles;
    for (std::int64_t t = s.first_tile(work); t <= s.last_tile(work); ++t) tiles.push_back(t);
    return tiles;
  };
}

/// Column tiles of a work, the factor's after the gate's.
TilesOfWork column_tiles(const GemmSchedule& s, bool gated) {
  return [s, gated](std::int64_t work) {
    const std::int64_t cols = s.tiles_n();
    std::vector<std::int64_t> tiles;
    for (std::int64_t t = s.first_tile(work); t <= s.last_tile(work); ++t) {
      tiles.push_back(t % cols);
      if (gated) tiles.push_back(cols + t % cols);
    }
    std::sort(tiles.begin(), tiles.end());
    tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
    return tiles;
  };
}

OperandSpec a_operand(TensorId id, const GemmSchedule& s) {
  const std::int64_t slice = s.wait_k == 0 ? s.k : s.wait_k;
  const std::int64_t slices = ceil_div(s.k, slice);
  return {.tensor = id,
          .access = Access::kRead,
          .kernel_tiles = TileSet::plain({{s.m, s.k}, {s.coarse_m * s.tile_m, slice}}),
          .tiles_of_work = tiles_read(
              s, [=](std::int64_t t, std::int64_t i) { return s.a_tile(t, 0)[0] * slices + i; }),
          .sync_slot = GemmOperands::kA};
}

OperandSpec b_operand(TensorId id, const Tensor& b, const GemmSchedule& s, BLayout layout) {
  const bool constant = b.spec.kind == TensorKind::kConstant;
  const bool k_first = layout == BLayout::kKxN;
  const std::int64_t slice = s.wait_k == 0 ? s.k : s.wait_k;
  const std::int64_t slices = ceil_div(s.k, slice);
  const std::int64_t cols = s.tiles_n();
  return {.tensor = id,
          .access = Access::kRead,
          .when = constant ? ReadTime::kPrologue : ReadTime::kAfterWait,
          .kernel_tiles = TileSet::plain(k_first ? Tiling{{s.k, s.n}, {slice, s.tile_n}}
                                                 : Tiling{{s.n, s.k}, {s.tile_n, slice}}),
          .tiles_of_work = tiles_read(s,
                                      [=](std::int64_t t, std::int64_t i) {
                                        return k_first ? i * cols + t % cols
                                                       : t % cols * slices + i;
                                      }),
          .sync_slot = GemmOperands::kB};
}

/// Boxes of the column tiles of a constant over `shape`, whose axis `axis` runs over N columns, or
/// over 2N: the factor's tiles need not lie on the gate's grid.
TileSet column_boxes(const Shape& shape, int axis, const GemmSchedule& s, bool gated) {
  std::vector<Box> boxes;
  for (std::int64_t half = 0; half < (gated ? 2 : 1); ++half) {
    for (std::int64_t j = 0; j < s.n; j += s.tile_n) {
      Box box{Coord::filled(shape.num_axes, 0), shape};
      box.begin[axis] = half * s.n + j;
      box.size[axis] = std::min(s.tile_n, s.n - j);
      boxes.push_back(box);
    }
  }
  return TileSet::loose_table(shape, std::move(boxes));
}

OperandSpec gated_b_operand(TensorId id, const Tensor& b, const GemmSchedule& s, BLayout layout) {
  const int axis = layout == BLayout::kKxN ? 1 : 0;
  return {.tensor = id,
          .access = Access::kRead,
          .when = ReadTime::kPrologue,
          .kernel_tiles = column_boxes(b.spec.shape, axis, s, true),
          .tiles_of_work = column_tiles(s, true),
          .sync_slot = GemmOperands::kB};
}

OperandSpec bias_operand(TensorId id, const Tensor& bias, const GemmSchedule& s, bool gated) {
  return {.tensor = id,
          .access = Access::kRead,
          .when = ReadTime::kPrologue,
          .kernel_tiles = column_boxes(bias.spec.shape, 0, s, gated),
          .tiles_of_work = column_tiles(s, gated)};
}

OperandSpec residual_operand(TensorId id, const GemmSchedule& s) {
  return {.tensor = id,
          .access = Access::kRead,
          .kernel_tiles = TileSet::plain({{s.m, s.n}, {s.tile_m, s.tile_n}}),
          .tiles_of_work = c_tiles(s),
          .sync_slot = GemmOperands::kSlotResidual};
}

OperandSpec c_operand(TensorId id, const GemmSchedule& s) {
  return {.tensor = id,
          .access = Access::kWrite,
          .reduction = s.split == GemmSplit::kTiles ? Reduction::kNone : Reduction::kLastArriver,
          .kernel_tiles = TileSet::plain({{s.m, s.n}, {s.tile_m, s.tile_n}}),
          .tiles_of_work = c_tiles(s),
          .sync_slot = GemmOperands::kC};
}

/// A whole C tile costs `ticks`; a work costs its share of multiplications.
Cost cost_of(const GemmSchedule& s, double ticks) {
  return {.per_work = ticks, .of_work = [s, ticks](std::int64_t work) {
            double multiplications = 0;
            for (std::int64_t t = s.first_tile(work); t <= s.last_tile(work); ++t) {
              const GemmSegment part = s.segment(work, t);
              multiplications += static_cast<double>(s.tile_box(t).volume()) *
                                 static_cast<double>(part.k_end - part.k_begin);
            }
            return ticks * multiplications /
                   (static_cast<double>(s.tile_m * s.tile_n) * static_cast<double>(s.k));
          }};
}

GemmForm form_of(const GemmEpilogue& epilogue) {
  if (epilogue.residual != kNoTensor) return GemmForm::kResidual;
  return epilogue.empty() ? GemmForm::kPlain : GemmForm::kEpilogue;
}

}  // namespace

std::string gemm_kernel_name(DType a, DType b, DType c, GemmForm form) {
  std::string types = std::string("gemm.") + name_of(a) + "." + name_of(b) + "." + name_of(c);
  switch (form) {
    case GemmForm::kPlain:
      break;
    case GemmForm::kEpilogue:
      return types + ".epilogue";
    case GemmForm::kResidual:
      return types + ".residual";
  }
  return types;
}

NodeSpec gemm(const TensorTable& tensors, const GemmOptions& options, TensorId a, TensorId b,
              TensorId c) {
  check_gemm_tensors(tensors, options, a, b, c);
  const Tensor& ta = tensors[a];
  const Tensor& tb = tensors[b];
  const Tensor& tc = tensors[c];
  const GemmEpilogue& epilogue = options.epilogue;
  const GemmSchedule s =
      gemm_schedule(options, ta.spec.shape[0], tc.spec.shape[1], ta.spec.shape[1]);
  const bool b_constant = tb.spec.kind == TensorKind::kConstant;
  const GemmForm form = form_of(epilogue);

  NodeSpec node{.name = options.name,
                .kernel = gemm_kernel_name(ta.spec.dtype, tb.spec.dtype, tc.spec.dtype, form),
                .num_works = s.num_works,
                .num_blocks = s.num_blocks,
                .order = options.order,
                .operands = {a_operand(a, s),
                             epilogue.gated ? gated_b_operand(b, tb, s, options.b_layout)
                                            : b_operand(b, tb, s, options.b_layout),
                             c_operand(c, s)},
                .resources = kGemmResources,
                .cost = options.cost.value_or(cost_of(s, options.cost_of_tile)),
                .edge = options.edge};
  node.resources.shared_bytes += options.shared_padding;
  if (s.split != GemmSplit::kTiles) {
    const std::int64_t tiles_per_slot = epilogue.gated ? 2 : 1;
    node.scratch_bytes =
        static_cast<std::size_t>(s.num_partial_slots() * s.partial_elements() * tiles_per_slot) *
        sizeof(float);
    for (std::int64_t t = 0; t < s.num_tiles(); ++t) {
      node.counter.arrivals.push_back(static_cast<std::uint32_t>(s.contributions(t)));
    }
  }

  GemmEpilogueArgs fused{.activation = epilogue.activation, .gated = epilogue.gated};
  if (epilogue.bias != kNoTensor) {
    fused.bias_operand = static_cast<int>(node.operands.size());
    fused.bias_type = tensors[epilogue.bias].spec.dtype;
    node.operands.push_back(bias_operand(epilogue.bias, tensors[epilogue.bias], s, epilogue.gated));
  }
  if (epilogue.residual != kNoTensor) {
    fused.residual_operand = static_cast<int>(node.operands.size());
    node.operands.push_back(residual_operand(epilogue.residual, s));
  }

  node.make_args = [=, types = std::array{ta.spec.dtype, tb.spec.dtype, tc.spec.dtype},
                    layout = options.b_layout,
                    prefetch_k = options.prefetch_k](const Addresses& at) {
    const auto operand = [&](int index) { return at.operands[static_cast<std::size_t>(index)]; };
    std::vector<std::byte> bytes;
    for_each_gemm_types([&]<class A, class B, class C>(GemmTypes<A, B, C> known) {
      if (!known.match(types[0], types[1], types[2])) return;
      const auto* b_ptr = static_cast<const B*>(operand(GemmOperands::kB));
      GemmFusedArgs<A, B, C> args{.gemm = {.a = {static_cast<const A*>(operand(GemmOperands::kA))},
                                           .b_stable = {b_constant ? b_ptr : nullptr},
                                           .b_produced = {b_constant ? nullptr : b_ptr},
                                           .c = {static_cast<C*>(operand(GemmOperands::kC))},
                                           .partials = static_cast<float*>(at.scratch),
                                           .schedule = s,
                                           .prefetch_k = b_constant ? std::min(prefetch_k, s.k) : 0,
                                           .b_layout = layout},
                                  .epilogue = fused};
      if (fused.bias_operand >= 0) args.epilogue.bias = {operand(fused.bias_operand)};
      if (fused.residual_operand >= 0) {
        args.epilogue.residual = {static_cast<const float*>(operand(fused.residual_operand))};
      }
      bytes = form == GemmForm::kPlain ? to_bytes(args.gemm) : to_bytes(args);
    });
    return bytes;
  };
  return node;
}

}  // namespace tileweave

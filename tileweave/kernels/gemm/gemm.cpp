#include "tileweave/kernels/gemm/gemm.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/kernels/gemm/gemm_args.h"

namespace tileweave {
namespace {

constexpr std::int64_t kLargestTile = std::int64_t{1} << 20;
constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
constexpr std::int64_t kMostWorks = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostStreamK = std::int64_t{1} << 62;  // flat steps times works

void need(bool holds, const GemmOptions& options, const std::string& expected,
          const std::string& got = {}) {
  if (!holds) throw Error("make gemm node `" + options.name + "`", expected, got);
}

void need_in_range(std::int64_t value, std::int64_t least, std::int64_t most, const char* what,
                   const GemmOptions& options) {
  need(value >= least && value <= most, options,
       std::string(what) + " must be between " + std::to_string(least) + " and " +
           std::to_string(most),
       std::to_string(value));
}

bool is_float(DType type) {
  return type == DType::kF32 || type == DType::kBF16;
}

/// Throws unless A, B and C fit together.
void check_tensors(const GemmOptions& options, const Tensor& a, const Tensor& b, const Tensor& c) {
  for (const Tensor* t : {&a, &b, &c}) {
    need(t->spec.shape.num_axes == 2, options, "`" + t->spec.name + "` must be a matrix",
         "shape " + to_string(t->spec.shape));
    need(is_float(t->spec.dtype), options, "`" + t->spec.name + "` must be f32 or bf16",
         name_of(t->spec.dtype));
  }
  need(a.spec.dtype == b.spec.dtype, options,
       "`" + a.spec.name + "` and `" + b.spec.name + "` must have one element type",
       std::string(name_of(a.spec.dtype)) + " and " + name_of(b.spec.dtype));
  const std::int64_t m = a.spec.shape[0];
  const std::int64_t k = a.spec.shape[1];
  const bool k_first = options.b_layout == BLayout::kKxN;
  const std::int64_t n = b.spec.shape[k_first ? 1 : 0];
  need(b.spec.shape[k_first ? 0 : 1] == k, options,
       "`" + b.spec.name + "` must be " +
           (k_first ? "(" + std::to_string(k) + ", N)" : "(N, " + std::to_string(k) + ")") +
           " for `" + a.spec.name + "` " + to_string(a.spec.shape),
       to_string(b.spec.shape));
  need(c.spec.shape == Shape{m, n}, options,
       "`" + c.spec.name + "` must be " + to_string(Shape{m, n}), to_string(c.spec.shape));
  need(c.spec.kind != TensorKind::kConstant, options,
       "the result `" + c.spec.name + "` must not be constant");
}

/// Calls `visit` with a value of the element type that `type` names.
template <class Visit>
auto with_type(DType type, Visit visit) {
  return type == DType::kBF16 ? visit(BFloat16{}) : visit(0.0F);
}

/// Kernel tiles that a work reads of A or B: `index(tile, slice)` for every slice of K that it
/// covers of every C tile that it computes.
template <class Index>
auto tiles_read(const GemmSchedule& s, Index index) {
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

OperandSpec c_operand(TensorId id, const GemmSchedule& s) {
  return {.tensor = id,
          .access = Access::kWrite,
          .reduction = s.split == GemmSplit::kTiles ? Reduction::kNone : Reduction::kLastArriver,
          .kernel_tiles = TileSet::plain({{s.m, s.n}, {s.tile_m, s.tile_n}}),
          .tiles_of_work =
              [s](std::int64_t work) {
                std::vector<std::int64_t> tiles;
                for (std::int64_t t = s.first_tile(work); t <= s.last_tile(work); ++t) {
                  tiles.push_back(t);
                }
                return tiles;
              },
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

}  // namespace

std::string gemm_kernel_name(DType operands, DType result) {
  return std::string("gemm.") + name_of(operands) + "." + name_of(result);
}

GemmSchedule gemm_schedule(const GemmOptions& options, std::int64_t m, std::int64_t n,
                           std::int64_t k) {
  need(m >= 1 && n >= 1 && k >= 1, options, "M, N and K must be at least 1",
       to_string(Coord{m, n, k}));
  need_in_range(options.tile_m, 1, kLargestTile, "tile_m", options);
  need_in_range(options.tile_n, 1, kLargestTile, "tile_n", options);
  need_in_range(options.tile_k, 1, kLargestTile, "tile_k", options);
  need_in_range(options.coarse_m, 1, kLargestTile, "coarse_m", options);
  need_in_range(options.prefetch_k, 0, kLargestTile, "prefetch_k", options);
  need_in_range(options.shared_padding, 0, kLargestTile, "shared_padding", options);
  need_in_range(options.num_blocks, 0, kMostWorks, "num_blocks", options);
  need(options.wait_k >= 0 && options.wait_k % options.tile_k == 0, options,
       "wait_k must be 0 or a multiple of tile_k " + std::to_string(options.tile_k),
       std::to_string(options.wait_k));

  GemmSchedule s{.m = m,
                 .n = n,
                 .k = k,
                 .tile_m = std::min(options.tile_m, m),
                 .tile_n = std::min(options.tile_n, n),
                 .tile_k = options.tile_k,
                 .coarse_m = options.coarse_m,
                 .wait_k = options.wait_k >= k ? 0 : options.wait_k,
                 .split = options.split};
  need(s.num_tiles() <= kMostWorks && s.num_tiles() <= kMostSteps / s.k_steps(), options,
       "the tiles must be large enough for at most 2^31 - 1 of them and 2^40 k steps",
       std::to_string(s.num_tiles()) + " tiles of " + std::to_string(s.k_steps()) + " k steps");
  if (options.split != GemmSplit::kSplitK) {
    need(options.splits == 1, options, "splits belongs to kSplitK and must be 1 otherwise",
         std::to_string(options.splits));
  }
  if (options.split == GemmSplit::kStreamK) {
    need(options.num_blocks >= 1 && options.num_blocks <= s.num_steps(), options,
         "Stream-K needs num_blocks between 1 and its " + std::to_string(s.num_steps()) +
             " (tile, k step) pairs",
         std::to_string(options.num_blocks));
    need(options.num_blocks <= kMostStreamK / s.num_steps(), options,
         "Stream-K takes at most 2^62 (tile, k step) pairs times blocks",
         std::to_string(s.num_steps()) + " pairs");
    s.num_works = options.num_blocks;
  } else {
    need(options.splits >= 1 && options.splits <= s.k_steps(), options,
         "splits must be between 1 and the " + std::to_string(s.k_steps()) + " k steps of K = " +
             std::to_string(k) + " with tile_k " + std::to_string(options.tile_k),
         std::to_string(options.splits));
    s.splits = options.splits;
    need(s.num_tiles() <= kMostWorks / s.splits, options, "tiles times splits must stay below 2^31",
         std::to_string(s.num_tiles()) + " tiles");
    s.num_works = s.num_tiles() * s.splits;
  }
  s.num_blocks = options.num_blocks == 0 ? s.num_works : std::min(options.num_blocks, s.num_works);
  return s;
}

NodeSpec gemm(const TensorTable& tensors, const GemmOptions& options, TensorId a, TensorId b,
              TensorId c) {
  const Tensor& ta = tensors[a];
  const Tensor& tb = tensors[b];
  const Tensor& tc = tensors[c];
  check_tensors(options, ta, tb, tc);
  need(c != a && c != b, options, "the result must be another tensor than the operands",
       "`" + tc.spec.name + "` as both");
  const GemmSchedule s =
      gemm_schedule(options, ta.spec.shape[0], tc.spec.shape[1], ta.spec.shape[1]);
  const bool b_constant = tb.spec.kind == TensorKind::kConstant;

  NodeSpec node{
      .name = options.name,
      .kernel = gemm_kernel_name(ta.spec.dtype, tc.spec.dtype),
      .num_works = s.num_works,
      .num_blocks = s.num_blocks,
      .order = options.order,
      .operands = {a_operand(a, s), b_operand(b, tb, s, options.b_layout), c_operand(c, s)},
      .resources = kGemmResources,
      .cost = options.cost.value_or(cost_of(s, options.cost_of_tile)),
      .edge = options.edge};
  node.resources.shared_bytes += options.shared_padding;
  if (s.split != GemmSplit::kTiles) {
    node.scratch_bytes =
        static_cast<std::size_t>(s.num_partial_slots() * s.partial_elements()) * sizeof(float);
    for (std::int64_t t = 0; t < s.num_tiles(); ++t) {
      node.counter.arrivals.push_back(static_cast<std::uint32_t>(s.contributions(t)));
    }
  }
  const DType operands = ta.spec.dtype;
  const DType result = tc.spec.dtype;
  node.make_args = [=, layout = options.b_layout,
                    prefetch_k = options.prefetch_k](const Addresses& at) {
    return with_type(operands, [&]<class T>(T) {
      return with_type(result, [&]<class C>(C) {
        const auto* b_ptr = static_cast<const T*>(at.operands[GemmOperands::kB]);
        return to_bytes(GemmArgs<T, C>{.a = {static_cast<const T*>(at.operands[GemmOperands::kA])},
                                       .b_stable = {b_constant ? b_ptr : nullptr},
                                       .b_produced = {b_constant ? nullptr : b_ptr},
                                       .c = {static_cast<C*>(at.operands[GemmOperands::kC])},
                                       .partials = static_cast<float*>(at.scratch),
                                       .schedule = s,
                                       .prefetch_k = b_constant ? std::min(prefetch_k, s.k) : 0,
                                       .b_layout = layout});
      });
    });
  };
  return node;
}

}  // namespace tileweave

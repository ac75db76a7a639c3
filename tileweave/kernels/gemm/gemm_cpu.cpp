// GEMM on the emulated device. A C tile is walked in sub-tiles that fit the caches; their sums come
// from panels of A and B packed as fp32 for a (K, N) B, and from dot products in place for (N, K).
// gemm_math_cpu.h has the arithmetic, this file says what is waited for, read, stored and signalled
// when.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "tileweave/kernels/gemm/gemm_args.h"
#include "tileweave/kernels/gemm/gemm_math_cpu.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

using gemm_math::kLanes;

constexpr std::int64_t kRows = 64;              // sub-tile of C
constexpr std::int64_t kPanelCols = 128;        // and its columns, for a (K, N) B
constexpr std::int64_t kPanelDepth = 64;        // chunk of K of the packed panels
constexpr std::int64_t kResults = 4096;         // most results of a sub-tile of dot products
constexpr std::int64_t kWeightBytes = 1 << 17;  // its part of B stays in L2 for all of its rows
constexpr std::int64_t kSlicedRows = 16;        // sub-tile while K is waited for in slices: as
constexpr std::int64_t kSlicedResults = 1024;   // many times kLanes sums are kept between slices
constexpr std::int64_t kLine = 64;              // bytes of a cache line

constexpr std::int64_t round_up(std::int64_t count) {
  return ceil_div(count, kLanes) * kLanes;
}

/// Sub-tile that one pass computes, and the fp32 memory that a block needs for it.
struct Workspace {
  std::int64_t rows, cols;
  std::int64_t stride;                                                 // of its rows in memory
  std::int64_t acc = 0, bias = 0, panel_a = 0, panel_b = 0, sums = 0;  // elements

  Workspace(const GemmSchedule& s, BLayout layout, std::int64_t halves, std::int64_t b_bytes)
      : rows(std::min(kRows, s.tile_m)), cols(std::min(kPanelCols, s.tile_n)) {
    if (layout == BLayout::kNxK) {
      const bool sliced = s.wait_k != 0;
      if (sliced) rows = std::min(kSlicedRows, rows);
      cols = (sliced ? kSlicedResults : kResults) / rows;
      if (rows > 1) cols = std::min(cols, kWeightBytes / std::min(kWeightBytes, s.k * b_bytes));
      cols = std::min(std::max(cols / kLanes, std::int64_t{1}) * kLanes, s.tile_n);
      sums = sliced ? rows * cols * kLanes : 0;
    }
    stride = round_up(cols);
    acc = halves * rows * stride;
    bias = halves * stride;
    if (layout == BLayout::kKxN) {
      panel_a = rows * kPanelDepth;
      panel_b = kPanelDepth * stride;
    }
  }
  std::int64_t total() const { return acc + bias + panel_a + panel_b + sums; }
};

/// One block: runs works of a GEMM in the shape of a CUDA kernel.
template <class TA, class TB, class TC, int kSlots>
class GemmBlock {
 public:
  using Sync = SyncCta<AtomicsCpu, kSlots>;
  using Args = GemmArgs<TA, TB, TC>;

  GemmBlock(const Args& args, const GemmEpilogueArgs& epilogue, Sync& sync, AccessChecker* checker)
      : args_(args),
        epilogue_(epilogue),
        s_(args.schedule),
        sync_(sync),
        checker_(checker),
        halves_(epilogue.gated ? 2 : 1),
        work_(s_, args.b_layout, halves_, sizeof(TB)),
        memory_(std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(work_.total()))),
        bias_(memory_.get() + work_.acc),
        panel_a_(bias_ + work_.bias),
        panel_b_(panel_a_ + work_.panel_a),
        sums_(panel_b_ + work_.panel_b) {}

  /// Reads a constant B ahead of the first wait.
  void prefetch(std::int64_t work) {
    const GemmSegment part = s_.segment(work, s_.first_tile(work));
    const Box box = s_.tile_box(part.tile);
    const std::int64_t depth = std::min(args_.prefetch_k, part.k_end - part.k_begin);
    if (depth == 0) return;
    const MatrixView<const TB> b = b_view(args_.b_stable.get());
    const bool k_first = args_.b_layout == BLayout::kKxN;
    for (std::int64_t half = 0; half < halves_; ++half) {
      const std::int64_t col = half * s_.n + box.begin[1];
      const std::int64_t lines = k_first ? depth : box.size[1];
      const std::int64_t length = k_first ? box.size[1] : depth;
      for (std::int64_t i = 0; i < lines; ++i) {
        const TB* line =
            k_first ? b.row(part.k_begin + i, col, length) : b.row(col + i, part.k_begin, length);
        const auto* bytes = reinterpret_cast<const std::byte*>(line);
        for (std::int64_t at = 0; at < length * std::int64_t{sizeof(TB)}; at += kLine) {
          __builtin_prefetch(bytes + at, 0, 2);
        }
      }
    }
  }

  /// False: the run is aborted.
  bool run(std::int64_t work) {
    for (std::int64_t tile = s_.first_tile(work); tile <= s_.last_tile(work); ++tile) {
      if (!run_segment(s_.segment(work, tile))) return false;
    }
    return true;
  }

 private:
  enum class Waits : std::uint8_t { kNone, kForAll };

  bool run_segment(const GemmSegment& part) {
    const Box tile = s_.tile_box(part.tile);
    bool first = true;  // the first sub-tile waits for all that the segment reads
    for (std::int64_t j = 0; j < tile.size[1]; j += work_.cols) {
      for (std::int64_t i = 0; i < tile.size[0]; i += work_.rows) {
        const Box sub = sub_tile(tile, i, j);
        for (std::int64_t half = 0; half < halves_; ++half) {
          const Waits waits = first && half == 0 ? Waits::kForAll : Waits::kNone;
          if (!multiply(part, sub, half, waits)) return false;
        }
        if (first && !wait_residual(part.tile)) return false;
        first = false;
        part.contributions == 1 ? store_result(sub) : store_partial(part, tile, sub);
      }
    }
    if (s_.split != GemmSplit::kTiles) {
      if (!sync_.arrive_last(part.tile, static_cast<std::uint32_t>(part.contributions))) {
        return true;
      }
      if (part.contributions > 1) sum_partials(part.tile);
    }
    sync_.signal_output(GemmOperands::kC, s_.c_tile(part.tile));
    return true;
  }

  Box sub_tile(const Box& tile, std::int64_t i, std::int64_t j) const {
    return {{tile.begin[0] + i, tile.begin[1] + j},
            {std::min(work_.rows, tile.size[0] - i), std::min(work_.cols, tile.size[1] - j)}};
  }

  bool wait(std::int64_t tile, std::int64_t k) {
    ready_ = sync_.wait_input(GemmOperands::kA, s_.a_tile(tile, k));
    if (ready_ && args_.b_is_produced()) {
      ready_ = sync_.wait_input(GemmOperands::kB, args_.b_tile(tile, k));
    }
    return static_cast<bool>(ready_);
  }

  /// Every work of a tile waits, though only its last arriver reads: it declares to.
  bool wait_residual(std::int64_t tile) {
    if constexpr (kSlots > GemmOperands::kSlotResidual) {
      residual_ready_ = sync_.wait_input(GemmOperands::kSlotResidual, s_.c_tile(tile));
      return static_cast<bool>(residual_ready_);
    }
    return true;
  }

  bool has_residual() const { return epilogue_.residual_operand >= 0; }

  MatrixView<const TB> b_view(const TB* b) const {
    return {b, args_.b_layout == BLayout::kKxN ? halves_ * s_.n : s_.k, GemmOperands::kB, checker_};
  }
  MatrixView<const TA> a_view() const {
    return {args_.a.get(ready_), s_.k, GemmOperands::kA, checker_};
  }

  float* acc(std::int64_t half) const { return memory_.get() + half * work_.rows * work_.stride; }

  /// acc(half) = A[sub rows, k of the part] · B[k of the part, sub columns of that half].
  bool multiply(const GemmSegment& part, const Box& sub, std::int64_t half, Waits waits) {
    if (args_.b_layout == BLayout::kKxN) return multiply_panels(part, sub, half, waits);
    if (waits == Waits::kNone) {
      dot_products(sub, half, part.k_begin, part.k_end, nullptr);
      return true;
    }
    if (s_.slice_end(part.k_begin) >= part.k_end) {
      if (!wait(part.tile, part.k_begin)) return false;
      dot_products(sub, half, part.k_begin, part.k_end, nullptr);
      return true;
    }
    return multiply_slices(part, sub, half);
  }

  bool multiply_panels(const GemmSegment& part, const Box& sub, std::int64_t half, Waits waits) {
    std::fill_n(acc(half), sub.size[0] * work_.stride, 0.0F);
    for (std::int64_t k = part.k_begin; k < part.k_end;) {
      if (waits == Waits::kForAll && s_.waits_at(part, k) && !wait(part.tile, k)) return false;
      const std::int64_t end = std::min({k + kPanelDepth, s_.slice_end(k), part.k_end});
      accumulate(sub, half, k, end);
      k = end;
    }
    return true;
  }

  void accumulate(const Box& sub, std::int64_t half, std::int64_t k, std::int64_t k_end) {
    const std::int64_t depth = k_end - k;
    const MatrixView<const TA> a = a_view();
    for (std::int64_t i = 0; i < sub.size[0]; ++i) {
      gemm_math::widen(a.row(sub.begin[0] + i, k, depth), depth, panel_a_ + i * depth);
    }
    const MatrixView<const TB> b = b_view(args_.b(ready_));
    for (std::int64_t d = 0; d < depth; ++d) {
      float* to = panel_b_ + d * work_.stride;
      const TB* from = b.row(k + d, half * s_.n + sub.begin[1], sub.size[1]);
      gemm_math::widen(from, sub.size[1], to);
      std::fill(to + sub.size[1], to + work_.stride, 0.0F);
    }
    gemm_math::accumulate_panels(acc(half), panel_a_, panel_b_, sub.size[0], work_.stride, depth);
  }

  /// Whole products into acc(half), or, with `sums`, a step of them.
  void dot_products(const Box& sub, std::int64_t half, std::int64_t k, std::int64_t k_end,
                    float* sums) {
    const std::int64_t rows = sub.size[0];
    const std::int64_t cols = sub.size[1];
    const std::int64_t depth = k_end - k;
    const MatrixView<const TB> b = b_view(args_.b(ready_));
    gemm_math::dot_products({.a = a_view().block(sub.begin[0], k, rows, depth),
                             .a_stride = s_.k,
                             .b = b.block(half * s_.n + sub.begin[1], k, cols, depth),
                             .b_stride = s_.k,
                             .rows = rows,
                             .cols = cols,
                             .depth = depth,
                             .out = acc(half),
                             .out_stride = work_.stride,
                             .sums = sums});
  }

  /// Waits slice by slice, and multiplies what has come in whole groups of kLanes, so that the
  /// slices cannot show in the order of additions.
  bool multiply_slices(const GemmSegment& part, const Box& sub, std::int64_t half) {
    std::fill_n(sums_, sub.volume() * kLanes, 0.0F);
    std::int64_t done = part.k_begin;
    for (std::int64_t here = part.k_begin; here < part.k_end;) {
      if (!wait(part.tile, here)) return false;
      here = std::min(s_.slice_end(here), part.k_end);
      const std::int64_t whole = part.k_begin + (here - part.k_begin) / kLanes * kLanes;
      const std::int64_t end = here == part.k_end ? here : whole;
      if (end > done) dot_products(sub, half, done, end, sums_);
      done = end;
    }
    gemm_math::fold_sums(sums_, sub.size[0], sub.size[1], acc(half), work_.stride);
    return true;
  }

  /// Applies the epilogue to the sums in acc and writes C.
  void store_result(const Box& sub) {
    const std::int64_t cols = sub.size[1];
    const MatrixView<TC> c(args_.c.get(), s_.n, GemmOperands::kC, checker_);
    const MatrixView<const float> residual(epilogue_.residual.get(residual_ready_), s_.n,
                                           epilogue_.residual_operand, checker_);
    load_bias(sub);
    for (std::int64_t i = 0; i < sub.size[0]; ++i) {
      const std::int64_t row = sub.begin[0] + i;
      float* const x = acc(0) + i * work_.stride;
      gemm_math::EpilogueRow finish{
          .x = x, .out = x, .count = cols, .activation = epilogue_.activation};
      if (halves_ == 2) finish.factor = acc(1) + i * work_.stride;
      if (epilogue_.bias_operand >= 0) {
        finish.bias = bias_;
        finish.factor_bias = bias_ + work_.stride;
      }
      if (has_residual()) finish.residual = residual.row(row, sub.begin[1], cols);
      TC* to = c.row(row, sub.begin[1], cols);
      if constexpr (std::is_same_v<TC, float>) {
        finish.out = to;
        gemm_math::finish_row(finish);
      } else {
        gemm_math::finish_row(finish);
        for (std::int64_t j = 0; j < cols; ++j) to[j] = from_float<TC>(x[j]);
      }
    }
  }

  void load_bias(const Box& sub) {
    if (epilogue_.bias_operand < 0) return;
    for (std::int64_t half = 0; half < halves_; ++half) {
      float* const to = bias_ + half * work_.stride;
      const std::int64_t col = half * s_.n + sub.begin[1];
      switch (epilogue_.bias_type) {
        case DType::kBF16:
          load_bias_as<BFloat16>(col, sub.size[1], to);
          break;
        case DType::kF16:
          load_bias_as<Float16>(col, sub.size[1], to);
          break;
        default:
          load_bias_as<float>(col, sub.size[1], to);
      }
    }
  }
  template <class T>
  void load_bias_as(std::int64_t col, std::int64_t cols, float* to) {
    const TensorView<const T> bias(static_cast<const T*>(epilogue_.bias.get()), {halves_ * s_.n},
                                   epilogue_.bias_operand, checker_);
    gemm_math::widen(bias.run({col}, cols), cols, to);
  }

  float* partial(std::int64_t slot, std::int64_t half) const {
    return args_.partials + (slot * halves_ + half) * s_.partial_elements();
  }

  void store_partial(const GemmSegment& part, const Box& tile, const Box& sub) {
    for (std::int64_t half = 0; half < halves_; ++half) {
      for (std::int64_t i = 0; i < sub.size[0]; ++i) {
        std::copy_n(acc(half) + i * work_.stride, sub.size[1],
                    partial(part.slot, half) + place_in(tile, sub, i));
      }
    }
  }
  std::int64_t place_in(const Box& tile, const Box& sub, std::int64_t i) const {
    return (sub.begin[0] - tile.begin[0] + i) * s_.tile_n + sub.begin[1] - tile.begin[1];
  }

  /// Adds the partial tiles in ascending k, whoever arrived last, and finishes C.
  void sum_partials(std::int64_t t) {
    const Box tile = s_.tile_box(t);
    for (std::int64_t j = 0; j < tile.size[1]; j += work_.cols) {
      for (std::int64_t i = 0; i < tile.size[0]; i += work_.rows) {
        const Box sub = sub_tile(tile, i, j);
        for (std::int64_t half = 0; half < halves_; ++half) {
          for (std::int64_t row = 0; row < sub.size[0]; ++row) {
            sum_partial_row(t, half, place_in(tile, sub, row), sub.size[1],
                            acc(half) + row * work_.stride);
          }
        }
        store_result(sub);
      }
    }
  }
  void sum_partial_row(std::int64_t t, std::int64_t half, std::int64_t at, std::int64_t cols,
                       float* sum) {
    const std::int64_t first = s_.first_contributor(t);
    std::copy_n(partial(s_.partial_slot(first, t), half) + at, cols, sum);
    for (std::int64_t w = first + 1; w < first + s_.contributions(t); ++w) {
      const float* next = partial(s_.partial_slot(w, t), half) + at;
      for (std::int64_t j = 0; j < cols; ++j) sum[j] += next[j];
    }
  }

  const Args& args_;
  const GemmEpilogueArgs& epilogue_;
  const GemmSchedule& s_;
  Sync& sync_;
  AccessChecker* checker_;
  std::int64_t halves_;
  Workspace work_;
  std::unique_ptr<float[]> memory_;  // acc first
  float* bias_;
  float* panel_a_;
  float* panel_b_;
  float* sums_;
  Ready ready_{false};
  Ready residual_ready_{false};
};

template <class TA, class TB, class TC, GemmForm kForm>
void gemm_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  constexpr int kSlots = num_slots(kForm);
  const auto& args = *reinterpret_cast<const GemmArgs<TA, TB, TC>*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<kSlots>*>(context_bytes);
  GemmEpilogueArgs epilogue;
  if constexpr (kForm != GemmForm::kPlain) {
    epilogue = reinterpret_cast<const GemmFusedArgs<TA, TB, TC>*>(arg_bytes)->epilogue;
  }
  SyncCta<AtomicsCpu, kSlots> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  GemmBlock<TA, TB, TC, kSlots> block(args, epilogue, sync, lane.checker());
  const GemmSchedule& s = args.schedule;
  for (std::int64_t at = lane.block_index(); at < s.num_works; at += s.num_blocks) {
    const std::int64_t work = sync.remap(at);
    block.prefetch(work);
    if (!block.run(work)) return;
  }
}

template <class TA, class TB, class TC, GemmForm kForm>
void add(KernelLibrary& kernels) {
  kernels.add({.name = gemm_kernel_name(kDTypeOf<TA>, kDTypeOf<TB>, kDTypeOf<TC>, kForm),
               .num_sync_slots = num_slots(kForm),
               .cpu = gemm_cpu<TA, TB, TC, kForm>});
}

}  // namespace

void add_gemm_cpu(KernelLibrary& kernels) {
  for_each_gemm_types([&]<class A, class B, class C>(GemmTypes<A, B, C>) {
    add<A, B, C, GemmForm::kPlain>(kernels);
    add<A, B, C, GemmForm::kEpilogue>(kernels);
    add<A, B, C, GemmForm::kResidual>(kernels);
  });
}

}  // namespace tileweave

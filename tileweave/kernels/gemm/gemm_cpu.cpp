// GEMM on the emulated device. A C tile is walked in sub-tiles that fit the caches; for each,
// chunks of A and B are packed as fp32 (so both layouts and element types share one inner loop) and
// multiplied by gemm_tile-inl.h. The order of sums per element is ascending k everywhere.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tileweave/kernels/gemm/gemm_tile-inl.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tileweave/kernels/gemm/gemm_tile-inl.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tileweave/kernels/gemm/gemm_args.h"
#include "tileweave/runtime/cpu/tile_view.h"
#include "tileweave/sync/atomics_cpu.h"
#include "tileweave/sync/sync_cta.h"

namespace tileweave {
namespace {

HWY_EXPORT(accumulate_tile);

constexpr std::int64_t kRows = 64;     // sub-tile of C
constexpr std::int64_t kCols = 128;    //
constexpr std::int64_t kDepth = 64;    // chunk of K
constexpr std::int64_t kColUnit = 16;  // panels are padded with zeros to whole vectors

std::size_t elements(std::int64_t rows, std::int64_t cols) {
  return static_cast<std::size_t>(rows * cols);
}

/// One block: runs works of a GEMM in the shape of a CUDA kernel.
template <class T, class C>
class GemmBlock {
 public:
  using Sync = SyncCta<AtomicsCpu, GemmOperands::kCount>;

  GemmBlock(const GemmArgs<T, C>& args, Sync& sync, AccessChecker* checker)
      : args_(args),
        s_(args.schedule),
        sync_(sync),
        checker_(checker),
        rows_(std::min(kRows, s_.tile_m)),
        cols_(ceil_div(std::min(kCols, s_.tile_n), kColUnit) * kColUnit),
        acc_(elements(rows_, cols_)),
        a_panel_(elements(rows_, kDepth)),
        b_panel_(elements(kDepth, cols_)) {}

  /// Reads a constant B ahead of the first wait.
  void prefetch(std::int64_t work) {
    const GemmSegment part = s_.segment(work, s_.first_tile(work));
    const Box box = s_.tile_box(part.tile);
    const std::int64_t depth = std::min(args_.prefetch_k, part.k_end - part.k_begin);
    if (depth == 0) return;
    const MatrixView<const T> b = b_view(args_.b_stable.get());
    const bool k_first = args_.b_layout == BLayout::kKxN;
    const std::int64_t lines = k_first ? depth : box.size[1];
    for (std::int64_t i = 0; i < lines; ++i) {
      const T* line = k_first ? b.row(part.k_begin + i, box.begin[1], box.size[1])
                              : b.row(box.begin[1] + i, part.k_begin, depth);
      __builtin_prefetch(line);
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
  bool run_segment(const GemmSegment& part) {
    const Box tile = s_.tile_box(part.tile);
    Ready ready(false);
    for (std::int64_t i = 0; i < tile.size[0]; i += kRows) {
      for (std::int64_t j = 0; j < tile.size[1]; j += kCols) {
        const Box sub{{tile.begin[0] + i, tile.begin[1] + j},
                      {std::min(kRows, tile.size[0] - i), std::min(kCols, tile.size[1] - j)}};
        std::fill(acc_.begin(), acc_.end(), 0.0F);
        for (std::int64_t k = part.k_begin; k < part.k_end;) {
          if (i == 0 && j == 0 && s_.waits_at(part, k)) {
            ready = wait(part.tile, k);
            if (!ready) return false;
          }
          const std::int64_t end = std::min({k + kDepth, s_.slice_end(k), part.k_end});
          accumulate(sub, k, end, ready);
          k = end;
        }
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

  Ready wait(std::int64_t tile, std::int64_t k) {
    const Ready ready = sync_.wait_input(GemmOperands::kA, s_.a_tile(tile, k));
    if (!ready || !args_.b_is_produced()) return ready;
    return sync_.wait_input(GemmOperands::kB, args_.b_tile(tile, k));
  }

  MatrixView<const T> b_view(const T* b) const {
    return {b, args_.b_layout == BLayout::kKxN ? s_.n : s_.k, GemmOperands::kB, checker_};
  }

  /// acc += A[sub rows, k .. k_end) · B[k .. k_end, sub columns).
  void accumulate(const Box& sub, std::int64_t k, std::int64_t k_end, const Ready& ready) {
    const std::int64_t depth = k_end - k;
    const MatrixView<const T> a(args_.a.get(ready), s_.k, GemmOperands::kA, checker_);
    for (std::int64_t i = 0; i < sub.size[0]; ++i) {
      const T* from = a.row(sub.begin[0] + i, k, depth);
      float* to = a_panel_.data() + i * depth;
      for (std::int64_t d = 0; d < depth; ++d) to[d] = to_float(from[d]);
    }
    pack_b(b_view(args_.b(ready)), sub, k, depth);
    HWY_DYNAMIC_DISPATCH(accumulate_tile)
    (acc_.data(), a_panel_.data(), b_panel_.data(), sub.size[0], cols_, depth);
  }

  void pack_b(const MatrixView<const T>& b, const Box& sub, std::int64_t k, std::int64_t depth) {
    const std::int64_t cols = sub.size[1];
    if (args_.b_layout == BLayout::kKxN) {
      for (std::int64_t d = 0; d < depth; ++d) {
        const T* from = b.row(k + d, sub.begin[1], cols);
        float* to = b_panel_.data() + d * cols_;
        for (std::int64_t j = 0; j < cols; ++j) to[j] = to_float(from[j]);
        std::fill(to + cols, to + cols_, 0.0F);
      }
      return;
    }
    if (cols < cols_) std::fill(b_panel_.begin(), b_panel_.end(), 0.0F);
    for (std::int64_t j = 0; j < cols; ++j) {
      const T* from = b.row(sub.begin[1] + j, k, depth);
      float* to = b_panel_.data() + j;
      for (std::int64_t d = 0; d < depth; ++d) to[d * cols_] = to_float(from[d]);
    }
  }

  void store_result(const Box& sub) {
    const MatrixView<C> c(args_.c.get(), s_.n, GemmOperands::kC, checker_);
    for (std::int64_t i = 0; i < sub.size[0]; ++i) {
      C* to = c.row(sub.begin[0] + i, sub.begin[1], sub.size[1]);
      const float* from = acc_.data() + i * cols_;
      for (std::int64_t j = 0; j < sub.size[1]; ++j) to[j] = from_float<C>(from[j]);
    }
  }

  float* partial(std::int64_t slot) const { return args_.partials + slot * s_.partial_elements(); }

  void store_partial(const GemmSegment& part, const Box& tile, const Box& sub) {
    for (std::int64_t i = 0; i < sub.size[0]; ++i) {
      float* to = partial(part.slot) + (sub.begin[0] - tile.begin[0] + i) * s_.tile_n +
                  sub.begin[1] - tile.begin[1];
      std::copy_n(acc_.data() + i * cols_, sub.size[1], to);
    }
  }

  /// Adds the partial tiles in ascending k, whoever arrived last.
  void sum_partials(std::int64_t t) {
    const Box tile = s_.tile_box(t);
    const std::int64_t first = s_.first_contributor(t);
    const std::int64_t end = first + s_.contributions(t);
    const MatrixView<C> c(args_.c.get(), s_.n, GemmOperands::kC, checker_);
    for (std::int64_t i = 0; i < tile.size[0]; ++i) {
      C* to = c.row(tile.begin[0] + i, tile.begin[1], tile.size[1]);
      for (std::int64_t j = 0; j < tile.size[1]; ++j) {
        const std::int64_t at = i * s_.tile_n + j;
        float sum = partial(s_.partial_slot(first, t))[at];
        for (std::int64_t w = first + 1; w < end; ++w) sum += partial(s_.partial_slot(w, t))[at];
        to[j] = from_float<C>(sum);
      }
    }
  }

  const GemmArgs<T, C>& args_;
  const GemmSchedule& s_;
  Sync& sync_;
  AccessChecker* checker_;
  std::int64_t rows_;  // sub-tile as allocated
  std::int64_t cols_;  // and padded
  std::vector<float> acc_;
  std::vector<float> a_panel_;
  std::vector<float> b_panel_;
};

template <class T, class C>
void gemm_cpu(CpuLane& lane, const std::byte* arg_bytes, const std::byte* context_bytes) {
  const auto& args = *reinterpret_cast<const GemmArgs<T, C>*>(arg_bytes);
  const auto& context = *reinterpret_cast<const SyncContext<GemmOperands::kCount>*>(context_bytes);
  SyncCta<AtomicsCpu, GemmOperands::kCount> sync(context, AtomicsCpu(lane));
  if (!sync.begin_cta()) return;
  GemmBlock<T, C> block(args, sync, lane.checker());
  const GemmSchedule& s = args.schedule;
  for (std::int64_t at = lane.block_index(); at < s.num_works; at += s.num_blocks) {
    const std::int64_t work = sync.remap(at);
    block.prefetch(work);
    if (!block.run(work)) return;
  }
}

template <class T, class C>
void add(KernelLibrary& kernels) {
  kernels.add({.name = gemm_kernel_name(kDTypeOf<T>, kDTypeOf<C>),
               .num_sync_slots = GemmOperands::kCount,
               .cpu = gemm_cpu<T, C>});
}

}  // namespace

void add_gemm_cpu(KernelLibrary& kernels) {
  add<float, float>(kernels);
  add<float, BFloat16>(kernels);
  add<BFloat16, float>(kernels);
  add<BFloat16, BFloat16>(kernels);
}

}  // namespace tileweave

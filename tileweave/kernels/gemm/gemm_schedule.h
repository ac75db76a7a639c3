// GemmSchedule: which part of C = A · B each work of a GEMM computes. The one place where the
// cut into tiles, splits and partial sums is worked out, for the host and for every kernel.
//
// The iteration space is (C tile, k step), flattened with k fastest; work w takes the contiguous
// share [begin(w), begin(w + 1)): one tile (kTiles), one part of a tile's k steps (kSplitK), or an
// equal share of everything (kStreamK), which may end inside a tile. A tile that several works
// share is summed by the last of them to arrive, in ascending k, from partial tiles in the node's
// scratch. Pure, constexpr, host and device.
#pragma once

#include <cstdint>

#include "tileweave/core/coord.h"

namespace tileweave {

enum class GemmSplit : std::uint8_t {
  kTiles,    // one work per C tile
  kSplitK,   // `splits` works per C tile, each with an equal part of K
  kStreamK,  // `num_blocks` works with equal contiguous shares of all (tile, k step) pairs
};

/// The k steps of one C tile that one work computes.
struct GemmSegment {
  std::int64_t tile = 0;           // C tile, row-major
  std::int64_t k_begin = 0;        // elements of K, half open
  std::int64_t k_end = 0;          //
  std::int64_t slot = 0;           // partial tile in scratch, when contributions > 1
  std::int64_t contributions = 1;  // works that share the tile
};

struct GemmSchedule {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t tile_m = 0, tile_n = 0, tile_k = 0;
  std::int64_t coarse_m = 1;  // rows of tiles that one kernel tile of A spans
  std::int64_t wait_k = 0;    // elements of K per wait; 0: all of K at once
  std::int64_t splits = 1;    // kSplitK
  std::int64_t num_works = 0;
  std::int64_t num_blocks = 0;
  GemmSplit split = GemmSplit::kTiles;

  TW_HOST_DEVICE constexpr std::int64_t tiles_m() const { return ceil_div(m, tile_m); }
  TW_HOST_DEVICE constexpr std::int64_t tiles_n() const { return ceil_div(n, tile_n); }
  TW_HOST_DEVICE constexpr std::int64_t num_tiles() const { return tiles_m() * tiles_n(); }
  TW_HOST_DEVICE constexpr std::int64_t k_steps() const { return ceil_div(k, tile_k); }
  TW_HOST_DEVICE constexpr std::int64_t num_steps() const { return num_tiles() * k_steps(); }

  /// First flat step of work `w`; begin(num_works) is the end of the last.
  TW_HOST_DEVICE constexpr std::int64_t begin(std::int64_t w) const {
    if (split == GemmSplit::kStreamK) return w * num_steps() / num_works;
    return w / splits * k_steps() + w % splits * k_steps() / splits;
  }
  /// The work whose share holds flat step `step`: the largest w with begin(w) <= step.
  TW_HOST_DEVICE constexpr std::int64_t work_of(std::int64_t step) const {
    if (split == GemmSplit::kStreamK) return ((step + 1) * num_works - 1) / num_steps();
    return step / k_steps() * splits + ((step % k_steps() + 1) * splits - 1) / k_steps();
  }

  /// Segments of work `w` are those of tiles first_tile(w) to last_tile(w).
  TW_HOST_DEVICE constexpr std::int64_t first_tile(std::int64_t w) const {
    return begin(w) / k_steps();
  }
  TW_HOST_DEVICE constexpr std::int64_t last_tile(std::int64_t w) const {
    return (begin(w + 1) - 1) / k_steps();
  }
  TW_HOST_DEVICE constexpr GemmSegment segment(std::int64_t w, std::int64_t tile) const {
    const std::int64_t first_step = max64(begin(w), tile * k_steps()) - tile * k_steps();
    const std::int64_t end_step = min64(begin(w + 1), (tile + 1) * k_steps()) - tile * k_steps();
    return {.tile = tile,
            .k_begin = first_step * tile_k,
            .k_end = min64(end_step * tile_k, k),
            .slot = partial_slot(w, tile),
            .contributions = contributions(tile)};
  }

  /// Works first_contributor(tile) .. first_contributor(tile) + contributions(tile) share a tile,
  /// in ascending k.
  TW_HOST_DEVICE constexpr std::int64_t first_contributor(std::int64_t tile) const {
    return work_of(tile * k_steps());
  }
  TW_HOST_DEVICE constexpr std::int64_t contributions(std::int64_t tile) const {
    return work_of((tile + 1) * k_steps() - 1) - first_contributor(tile) + 1;
  }

  /// A Stream-K share may leave a tile unfinished at both its ends, any other share at one.
  TW_HOST_DEVICE constexpr std::int64_t slots_per_work() const {
    return split == GemmSplit::kStreamK ? 2 : 1;
  }
  TW_HOST_DEVICE constexpr std::int64_t partial_slot(std::int64_t w, std::int64_t tile) const {
    return w * slots_per_work() + (tile == first_tile(w) ? 0 : slots_per_work() - 1);
  }
  TW_HOST_DEVICE constexpr std::int64_t num_partial_slots() const {
    return split == GemmSplit::kTiles ? 0 : num_works * slots_per_work();
  }
  TW_HOST_DEVICE constexpr std::int64_t partial_elements() const { return tile_m * tile_n; }

  /// Rows and columns of C that a tile covers; cut at the edges of C.
  TW_HOST_DEVICE constexpr Box tile_box(std::int64_t tile) const {
    Box box;
    box.begin = {tile / tiles_n() * tile_m, tile % tiles_n() * tile_n};
    box.size = {min64(tile_m, m - box.begin[0]), min64(tile_n, n - box.begin[1])};
    return box;
  }

  /// What to wait on before element `k_at` of K is read for C tile `tile`: slices of wait_k
  /// elements, or one slice where K is waited for at once.
  TW_HOST_DEVICE constexpr std::int64_t slice_of(std::int64_t k_at) const {
    return wait_k == 0 ? 0 : k_at / wait_k;
  }
  TW_HOST_DEVICE constexpr std::int64_t slice_end(std::int64_t k_at) const {
    return wait_k == 0 ? k : min64((k_at / wait_k + 1) * wait_k, k);
  }
  TW_HOST_DEVICE constexpr bool waits_at(const GemmSegment& part, std::int64_t k_at) const {
    return k_at == part.k_begin || (wait_k != 0 && k_at % wait_k == 0);
  }
  TW_HOST_DEVICE constexpr Coord a_tile(std::int64_t tile, std::int64_t k_at) const {
    return {tile / tiles_n() / coarse_m, slice_of(k_at)};
  }
  TW_HOST_DEVICE constexpr Coord c_tile(std::int64_t tile) const {
    return {tile / tiles_n(), tile % tiles_n()};
  }
};

}  // namespace tileweave

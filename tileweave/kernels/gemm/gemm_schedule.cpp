#include "tileweave/kernels/gemm/gemm_schedule.h"

#include <algorithm>
#include <limits>
#include <string>

#include "tileweave/core/format.h"
#include "tileweave/kernels/gemm/gemm_check.h"

namespace tileweave {
namespace {

constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
constexpr std::int64_t kMostWorks = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostStreamK = std::int64_t{1} << 62;  // flat steps times works

void need_in_range(std::int64_t value, std::int64_t least, std::int64_t most, const char* what,
                   const GemmOptions& options) {
  need(value >= least && value <= most, options,
       std::string(what) + " must be between " + std::to_string(least) + " and " +
           std::to_string(most),
       std::to_string(value));
}

}  // namespace

GemmSchedule gemm_schedule(const GemmOptions& options, std::int64_t m, std::int64_t n,
                           std::int64_t k) {
  need(m >= 1 && n >= 1 && k >= 1, options, "M, N and K must be at least 1",
       to_string(Coord{m, n, k}));
  need_in_range(options.tile_m, 1, kLargestGemmTile, "tile_m", options);
  need_in_range(options.tile_n, 1, kLargestGemmTile, "tile_n", options);
  need_in_range(options.tile_k, 1, kLargestGemmTile, "tile_k", options);
  need_in_range(options.coarse_m, 1, kLargestGemmTile, "coarse_m", options);
  need_in_range(options.prefetch_k, 0, kLargestGemmTile, "prefetch_k", options);
  need_in_range(options.shared_padding, 0, kLargestGemmTile, "shared_padding", options);
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

}  // namespace tileweave

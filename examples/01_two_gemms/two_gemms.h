// Figure 1: two GEMMs, Y = X W and Z = Y V, written twice: derived and raw.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/kernels/gemm/gemm.h"
#include "tileweave/plan/plan.h"

namespace examples {

/// Y has `tiles_m` x `tiles_n` kernel tiles; K of both GEMMs is the width of Y, so that all tiles
/// take the same time.
struct Figure {
  std::int64_t tiles_m = 2, tiles_n = 2;
  std::int64_t tile_m = 64, tile_n = 64;
  std::int64_t shared_padding = 0;

  std::int64_t m() const { return tiles_m * tile_m; }
  std::int64_t n() const { return tiles_n * tile_n; }
  tileweave::GemmOptions gemm(const std::string& name) const {
    return {.name = name, .tile_m = tile_m, .tile_n = tile_n, .shared_padding = shared_padding};
  }
};

struct TwoGemms {
  tileweave::Plan plan{{.name = "two GEMMs"}};
  tileweave::TensorId x, w, y, v, z;
};

/// Maps, extents and targets follow from how the GEMM cuts its operands.
TwoGemms derived_form(const Figure& figure);
/// The same with every map, extent and target passed by hand, as in the paper's Listing 2.
TwoGemms raw_form(const Figure& figure);

/// Lines that overlap adds to each form, counted in the sources.
std::string added_lines_of_derived_form();
std::string added_lines_of_raw_form();

}  // namespace examples
